CREATE TABLE `__new_counted_responses` (
	`id_hash` text NOT NULL,
	`key_id` integer NOT NULL,
	`creates` integer NOT NULL,
	`made_at` integer,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`counted_at` integer NOT NULL,
	PRIMARY KEY(`id_hash`, `key_id`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_counted_responses`("id_hash", "key_id", "creates", "made_at", "input_tokens", "output_tokens", "counted_at") SELECT "id_hash", 0, 0, NULL, "input_tokens", "output_tokens", "counted_at" FROM `counted_responses`;--> statement-breakpoint
DROP TABLE `counted_responses`;--> statement-breakpoint
ALTER TABLE `__new_counted_responses` RENAME TO `counted_responses`;--> statement-breakpoint
CREATE INDEX `counted_responses_time` ON `counted_responses` (`counted_at`);