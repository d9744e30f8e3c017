CREATE TABLE `deleted_keys` (
	`id` integer PRIMARY KEY NOT NULL,
	`name` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `gpu_latest` (
	`gpu_id` integer PRIMARY KEY NOT NULL,
	`id` integer NOT NULL,
	`name` text NOT NULL,
	`power_draw_w` real,
	`temp_c` integer,
	`memory_used_mb` integer,
	`memory_total_mb` integer,
	`utilization_pct` integer
);
--> statement-breakpoint
CREATE TABLE `gpu_power_minute` (
	`minute` integer PRIMARY KEY NOT NULL,
	`power_draw_w` real NOT NULL
);
--> statement-breakpoint
CREATE TABLE `gpu_samples` (
	`id` integer PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`power_draw_w` real,
	`temp_c` integer,
	`memory_used_mb` integer,
	`memory_total_mb` integer,
	`utilization_pct` integer
);
--> statement-breakpoint
CREATE TABLE `keys` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`key` text NOT NULL,
	`name` text NOT NULL,
	`is_active` integer NOT NULL,
	`created_at` integer NOT NULL,
	`last_used_at` integer,
	`request_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `keys_key_unique` ON `keys` (`key`);--> statement-breakpoint
CREATE TABLE `login_attempts` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`address` text NOT NULL,
	`attempted_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `login_attempts_address` ON `login_attempts` (`address`,`attempted_at`);--> statement-breakpoint
CREATE INDEX `login_attempts_time` ON `login_attempts` (`attempted_at`);--> statement-breakpoint
CREATE TABLE `sessions` (
	`id_hash` text PRIMARY KEY NOT NULL,
	`csrf_token` text NOT NULL,
	`username` text NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `settings` (
	`name` text PRIMARY KEY NOT NULL,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `usage_day` (
	`day` integer NOT NULL,
	`key_id` integer NOT NULL,
	`request_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	PRIMARY KEY(`day`, `key_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `usage_flushes` (
	`ledger` text PRIMARY KEY NOT NULL,
	`flush` integer NOT NULL,
	`written_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `usage_hour` (
	`hour` integer NOT NULL,
	`key_id` integer NOT NULL,
	`request_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	PRIMARY KEY(`hour`, `key_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `usage_minute` (
	`minute` integer NOT NULL,
	`key_id` integer NOT NULL,
	`request_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	PRIMARY KEY(`minute`, `key_id`)
) WITHOUT ROWID;
