-- SPDX-License-Identifier: BSD-2-Clause
-- The guard of a fence in MySQL 8 and MariaDB 10. A transaction says its fence first, and works after that:
--
--     START TRANSACTION;
--     CALL redlock_fence('orders/42', 1795238400123456, FALSE);   -- TRUE: a shared lock
--     UPDATE orders SET ... WHERE id = 42;
--     COMMIT;
--
-- A smaller fence than the name has had is refused with SQLSTATE 45000: roll back then. Until the transaction ends, another one with a fence of this name waits.

CREATE TABLE redlock_fences (
	name   varbinary(512) PRIMARY KEY,
	writer bigint NOT NULL, -- the largest fence of an exclusive lock
	reader bigint NOT NULL  -- the largest fence of a shared lock
) ENGINE = InnoDB;

DELIMITER //
CREATE PROCEDURE redlock_fence(lock_name varbinary(512), lock_fence bigint, lock_shared boolean) MODIFIES SQL DATA
BEGIN
	DECLARE largest_writer, largest_reader bigint;
	INSERT INTO redlock_fences VALUES (lock_name, 0, 0) ON DUPLICATE KEY UPDATE writer = writer;
	SELECT writer, reader INTO largest_writer, largest_reader FROM redlock_fences WHERE name = lock_name FOR UPDATE;
	IF lock_fence < largest_writer OR (NOT lock_shared AND lock_fence < largest_reader) THEN
		SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'the fence is stale: somebody else got the lock later';
	END IF;
	IF lock_shared THEN
		UPDATE redlock_fences SET reader = greatest(reader, lock_fence) WHERE name = lock_name;
	ELSE
		UPDATE redlock_fences SET writer = lock_fence WHERE name = lock_name;
	END IF;
END //
DELIMITER ;
