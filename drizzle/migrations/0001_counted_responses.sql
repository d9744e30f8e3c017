CREATE TABLE `counted_responses` (
	`id_hash` text PRIMARY KEY NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`counted_at` integer NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `counted_responses_time` ON `counted_responses` (`counted_at`);