CREATE TABLE `backend_minute` (
	`minute` integer NOT NULL,
	`backend` text NOT NULL,
	`request_count` integer NOT NULL,
	`error_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`cached_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`streamed_tokens` integer NOT NULL,
	`streamed_us` integer NOT NULL,
	`first_byte` text NOT NULL,
	PRIMARY KEY(`minute`, `backend`)
);
--> statement-breakpoint
CREATE TABLE `catalog_instances` (
	`name` text PRIMARY KEY NOT NULL,
	`file_hash` text NOT NULL,
	`seen_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `draining_backends` (
	`backend` text PRIMARY KEY NOT NULL,
	`since` integer NOT NULL,
	`username` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `reconciliation_backend_day` (
	`day` integer NOT NULL,
	`backend` text NOT NULL,
	`generated_tokens` integer NOT NULL,
	`prompt_tokens` integer NOT NULL,
	`counted_output_tokens` integer NOT NULL,
	`counted_input_tokens` integer NOT NULL,
	PRIMARY KEY(`day`, `backend`)
);
--> statement-breakpoint
ALTER TABLE `request_log` ADD `reason` text;