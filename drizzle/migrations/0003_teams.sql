-- Triggers and functions: 36985c7778d786f3
ALTER TABLE `usage_journal` RENAME TO `staged_flushes`;--> statement-breakpoint
CREATE TABLE `subjects` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`kind` text NOT NULL,
	`name` text NOT NULL,
	`note` text,
	`tags` text,
	`rules` text,
	`created_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `__new_usage_model_day` (
	`day` integer NOT NULL,
	`key_id` integer NOT NULL,
	`model` text NOT NULL,
	`team_id` integer DEFAULT 0 NOT NULL,
	`user_id` integer DEFAULT 0 NOT NULL,
	`request_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cached_input_tokens` integer NOT NULL,
	`reasoning_tokens` integer NOT NULL,
	`cached_beside_input_tokens` integer NOT NULL,
	PRIMARY KEY(`day`, `key_id`, `model`, `team_id`, `user_id`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_usage_model_day`("day", "key_id", "model", "team_id", "user_id", "request_count", "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cached_beside_input_tokens") SELECT "day", "key_id", "model", 0, 0, "request_count", "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cached_beside_input_tokens" FROM `usage_model_day`;--> statement-breakpoint
DROP TABLE `usage_model_day`;--> statement-breakpoint
ALTER TABLE `__new_usage_model_day` RENAME TO `usage_model_day`;--> statement-breakpoint
CREATE TABLE `__new_usage_model_hour` (
	`hour` integer NOT NULL,
	`key_id` integer NOT NULL,
	`model` text NOT NULL,
	`team_id` integer DEFAULT 0 NOT NULL,
	`user_id` integer DEFAULT 0 NOT NULL,
	`request_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cached_input_tokens` integer NOT NULL,
	`reasoning_tokens` integer NOT NULL,
	`cached_beside_input_tokens` integer NOT NULL,
	PRIMARY KEY(`hour`, `key_id`, `model`, `team_id`, `user_id`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_usage_model_hour`("hour", "key_id", "model", "team_id", "user_id", "request_count", "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cached_beside_input_tokens") SELECT "hour", "key_id", "model", 0, 0, "request_count", "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cached_beside_input_tokens" FROM `usage_model_hour`;--> statement-breakpoint
DROP TABLE `usage_model_hour`;--> statement-breakpoint
ALTER TABLE `__new_usage_model_hour` RENAME TO `usage_model_hour`;--> statement-breakpoint
CREATE TABLE `__new_usage_model_month` (
	`month` integer NOT NULL,
	`key_id` integer NOT NULL,
	`model` text NOT NULL,
	`team_id` integer DEFAULT 0 NOT NULL,
	`user_id` integer DEFAULT 0 NOT NULL,
	`request_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cached_input_tokens` integer NOT NULL,
	`reasoning_tokens` integer NOT NULL,
	`cached_beside_input_tokens` integer NOT NULL,
	PRIMARY KEY(`month`, `key_id`, `model`, `team_id`, `user_id`)
) WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_usage_model_month`("month", "key_id", "model", "team_id", "user_id", "request_count", "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cached_beside_input_tokens") SELECT "month", "key_id", "model", 0, 0, "request_count", "input_tokens", "output_tokens", "cached_input_tokens", "reasoning_tokens", "cached_beside_input_tokens" FROM `usage_model_month`;--> statement-breakpoint
DROP TABLE `usage_model_month`;--> statement-breakpoint
ALTER TABLE `__new_usage_model_month` RENAME TO `usage_model_month`;--> statement-breakpoint
ALTER TABLE `keys` ADD `team_id` integer;--> statement-breakpoint
ALTER TABLE `request_log` ADD `team_id` integer;