CREATE TABLE `latency_hour` (
	`hour` integer NOT NULL,
	`model` text NOT NULL,
	`request_count` integer NOT NULL,
	`first_byte` text NOT NULL,
	`duration` text NOT NULL,
	`tokens_per_second` text NOT NULL,
	PRIMARY KEY(`hour`, `model`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `latency_minute` (
	`minute` integer NOT NULL,
	`model` text NOT NULL,
	`request_count` integer NOT NULL,
	`first_byte` text NOT NULL,
	`duration` text NOT NULL,
	`tokens_per_second` text NOT NULL,
	PRIMARY KEY(`minute`, `model`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `outcome_hour` (
	`hour` integer NOT NULL,
	`key_id` integer NOT NULL,
	`outcome` text NOT NULL,
	`code` text NOT NULL,
	`count` integer NOT NULL,
	`last_at` integer NOT NULL,
	PRIMARY KEY(`hour`, `key_id`, `outcome`, `code`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `outcome_minute` (
	`minute` integer NOT NULL,
	`key_id` integer NOT NULL,
	`outcome` text NOT NULL,
	`code` text NOT NULL,
	`count` integer NOT NULL,
	`last_at` integer NOT NULL,
	PRIMARY KEY(`minute`, `key_id`, `outcome`, `code`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `reconciliation_day` (
	`day` integer PRIMARY KEY NOT NULL,
	`generated_tokens` integer NOT NULL,
	`prompt_tokens` integer NOT NULL,
	`counted_output_tokens` integer NOT NULL,
	`counted_input_tokens` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `request_log` (
	`id` integer PRIMARY KEY NOT NULL,
	`ended_at` integer NOT NULL,
	`request_id` text NOT NULL,
	`key_id` integer,
	`address` text NOT NULL,
	`client` text,
	`method` text NOT NULL,
	`path` text NOT NULL,
	`model_asked` text,
	`model_sent` text,
	`backend` text,
	`status` integer NOT NULL,
	`outcome` text NOT NULL,
	`code` text,
	`cause` text,
	`flags` integer NOT NULL,
	`input_tokens` integer,
	`output_tokens` integer,
	`cached_input_tokens` integer,
	`reasoning_tokens` integer,
	`queue_us` integer,
	`upstream_us` integer,
	`first_byte_us` integer,
	`duration_us` integer NOT NULL,
	`response_bytes` integer,
	`max_tokens_from` integer,
	`max_tokens_to` integer,
	`is_failed` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `request_log_key` ON `request_log` (`key_id`,`id`);--> statement-breakpoint
CREATE INDEX `request_log_request_id` ON `request_log` (`request_id`);--> statement-breakpoint
CREATE INDEX `request_log_failed` ON `request_log` (`id`) WHERE is_failed = 1;--> statement-breakpoint
CREATE TABLE `tokenless_hour` (
	`hour` integer NOT NULL,
	`key_id` integer NOT NULL,
	`model` text NOT NULL,
	`path` text NOT NULL,
	`request_count` integer NOT NULL,
	`streamed_count` integer NOT NULL,
	PRIMARY KEY(`hour`, `key_id`, `model`, `path`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `usage_model_day` (
	`day` integer NOT NULL,
	`key_id` integer NOT NULL,
	`model` text NOT NULL,
	`request_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cached_input_tokens` integer NOT NULL,
	`cached_beside_input_tokens` integer NOT NULL,
	`reasoning_tokens` integer NOT NULL,
	PRIMARY KEY(`day`, `key_id`, `model`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `usage_model_hour` (
	`hour` integer NOT NULL,
	`key_id` integer NOT NULL,
	`model` text NOT NULL,
	`request_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cached_input_tokens` integer NOT NULL,
	`cached_beside_input_tokens` integer NOT NULL,
	`reasoning_tokens` integer NOT NULL,
	PRIMARY KEY(`hour`, `key_id`, `model`)
) WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `sessions` ADD `created_at` integer;--> statement-breakpoint
ALTER TABLE `sessions` ADD `address` text;--> statement-breakpoint
ALTER TABLE `sessions` ADD `client` text;