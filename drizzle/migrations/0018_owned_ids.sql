CREATE TABLE `owned` (
	`id_hash` text PRIMARY KEY NOT NULL,
	`key_id` integer NOT NULL,
	`backend` text,
	`used_at` integer NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `owned_key` ON `owned` (`key_id`);--> statement-breakpoint
CREATE INDEX `owned_time` ON `owned` (`used_at`);--> statement-breakpoint
INSERT INTO owned (id_hash, key_id, backend, used_at) SELECT id_hash, key_id, backend, counted_at FROM (
	SELECT id_hash, key_id, backend, counted_at, row_number() OVER (
		PARTITION BY id_hash ORDER BY coalesce(made_at * 1000, counted_at), counted_at, key_id
	) AS place FROM counted_responses WHERE creates > 0
) AS creators WHERE place = 1;--> statement-breakpoint
DELETE FROM counted_responses WHERE key_id = 0;--> statement-breakpoint
ALTER TABLE `counted_responses` DROP COLUMN `creates`;--> statement-breakpoint
ALTER TABLE `counted_responses` DROP COLUMN `made_at`;--> statement-breakpoint
ALTER TABLE `counted_responses` DROP COLUMN `estimated_tokens`;--> statement-breakpoint
ALTER TABLE `counted_responses` DROP COLUMN `backend`;