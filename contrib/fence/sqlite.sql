-- SPDX-License-Identifier: BSD-2-Clause
-- The guard of a fence in SQLite 3.32 or later. A transaction says its fence first, and works after that:
--
--     BEGIN IMMEDIATE;
--     INSERT INTO redlock_fence (name, fence) VALUES ('orders/42', 1795238400123456);   -- and shared = 1 for a shared lock
--     UPDATE orders SET ... WHERE id = 42;
--     COMMIT;
--
-- With a smaller fence than the name has had the INSERT fails, and the transaction is rolled back.

CREATE TABLE redlock_fences (
	name   TEXT PRIMARY KEY NOT NULL,
	writer INTEGER NOT NULL, -- the largest fence of an exclusive lock
	reader INTEGER NOT NULL  -- the largest fence of a shared lock
) WITHOUT ROWID;

CREATE VIEW redlock_fence AS SELECT name, max(writer, reader) AS fence, reader > writer AS shared FROM redlock_fences;

CREATE TRIGGER redlock_fence_check INSTEAD OF INSERT ON redlock_fence BEGIN
	SELECT raise(ROLLBACK, 'the fence is no positive integer') WHERE typeof(NEW.fence) <> 'integer' OR NEW.fence <= 0;
	SELECT raise(ROLLBACK, 'the fence is stale: somebody else got the lock later') FROM redlock_fences
	WHERE name = NEW.name AND (NEW.fence < writer OR (NOT coalesce(NEW.shared, 0) AND NEW.fence < reader));
	INSERT INTO redlock_fences VALUES (NEW.name, iif(coalesce(NEW.shared, 0), 0, NEW.fence), iif(coalesce(NEW.shared, 0), NEW.fence, 0))
	ON CONFLICT (name) DO UPDATE SET writer = max(writer, excluded.writer), reader = max(reader, excluded.reader);
END;
