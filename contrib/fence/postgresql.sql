-- SPDX-License-Identifier: BSD-2-Clause
-- The guard of a fence in PostgreSQL 12 or later. A transaction says its fence first, and works after that:
--
--     BEGIN;
--     SELECT redlock_fence('orders/42', 1795238400123456);   -- the name and the fence of the lock; a third argument, true: a shared lock
--     UPDATE orders SET ... WHERE id = 42;
--     COMMIT;
--
-- A smaller fence than the name has had is refused with SQLSTATE RL001. Until the transaction ends, another one with a fence of this name waits. So what an old
-- holder has begun is done, or undone, before the next holder reads.

CREATE TABLE redlock_fences (
	name   text PRIMARY KEY,
	writer bigint NOT NULL, -- the largest fence of an exclusive lock
	reader bigint NOT NULL  -- the largest fence of a shared lock
);

CREATE FUNCTION redlock_fence(lock_name text, lock_fence bigint, lock_shared boolean DEFAULT false) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO redlock_fences AS f
	VALUES (lock_name, CASE WHEN lock_shared THEN 0 ELSE lock_fence END, CASE WHEN lock_shared THEN lock_fence ELSE 0 END)
	ON CONFLICT (name) DO UPDATE SET writer = greatest(f.writer, excluded.writer), reader = greatest(f.reader, excluded.reader)
	WHERE lock_fence >= f.writer AND (lock_shared OR lock_fence >= f.reader);
	IF NOT FOUND THEN
		RAISE EXCEPTION 'the fence % of the lock % is stale', lock_fence, lock_name
			USING ERRCODE = 'RL001', HINT = 'Somebody else got the lock later: stop, and take it again.';
	END IF;
	PERFORM set_config('redlock.fenced', 'yes', true);
END $$;

-- For tables that nobody may write to without a fence. A transaction that has not called redlock_fence() is refused with SQLSTATE RL002:
--
--     CREATE TRIGGER fenced BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON orders FOR EACH STATEMENT EXECUTE FUNCTION redlock_fenced();
CREATE FUNCTION redlock_fenced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF coalesce(current_setting('redlock.fenced', true), '') <> 'yes' THEN
		RAISE EXCEPTION 'the table % is written to without a fence', tg_table_name
			USING ERRCODE = 'RL002', HINT = 'SELECT redlock_fence(name, fence) first, in the same transaction.';
	END IF;
	RETURN NULL;
END $$;
