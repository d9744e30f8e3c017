-- Triggers and functions: cad02e48aacaf7e1
CREATE TABLE `backend_minute` (
	`minute` integer NOT NULL,
	`backend` text NOT NULL,
	`request_count` integer NOT NULL,
	`error_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`cached_tokens` integer NOT NULL,
	`expected_tokens` integer DEFAULT 0 NOT NULL,
	`regret_tokens` integer DEFAULT 0 NOT NULL,
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
CREATE TABLE `counted_responses` (
	`id_hash` text NOT NULL,
	`key_id` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`counted_at` integer NOT NULL,
	PRIMARY KEY(`id_hash`, `key_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `counted_responses_time` ON `counted_responses` (`counted_at`);--> statement-breakpoint
CREATE TABLE `deleted_keys` (
	`id` integer PRIMARY KEY NOT NULL,
	`name` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `draining_backends` (
	`backend` text PRIMARY KEY NOT NULL,
	`since` integer NOT NULL,
	`username` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `former_secrets` (
	`key` text PRIMARY KEY NOT NULL,
	`key_id` integer NOT NULL,
	`valid_until` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `former_secrets_key` ON `former_secrets` (`key_id`);--> statement-breakpoint
CREATE TABLE `gpu_hour` (
	`hour` integer NOT NULL,
	`gpu_id` integer NOT NULL,
	`power_sum` real NOT NULL,
	`power_count` integer NOT NULL,
	`power_max` real,
	`power_last` real,
	`temp_sum` real NOT NULL,
	`temp_count` integer NOT NULL,
	`temp_max` integer,
	`temp_last` integer,
	`memory_sum` real NOT NULL,
	`memory_count` integer NOT NULL,
	`memory_max` integer,
	`memory_last` integer,
	`utilization_sum` real NOT NULL,
	`utilization_count` integer NOT NULL,
	`utilization_max` integer,
	`utilization_last` integer,
	PRIMARY KEY(`hour`, `gpu_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `gpu_latest` (
	`gpu_id` integer PRIMARY KEY NOT NULL,
	`id` integer NOT NULL,
	`name` text NOT NULL,
	`power_draw_w` real,
	`temp_c` integer,
	`memory_used_mb` integer,
	`memory_total_mb` integer,
	`utilization_pct` integer,
	`host` text,
	`host_changed_at` integer,
	`other_host` text
);
--> statement-breakpoint
CREATE TABLE `gpu_minute` (
	`minute` integer NOT NULL,
	`gpu_id` integer NOT NULL,
	`power_sum` real NOT NULL,
	`power_count` integer NOT NULL,
	`power_max` real,
	`power_last` real,
	`temp_sum` real NOT NULL,
	`temp_count` integer NOT NULL,
	`temp_max` integer,
	`temp_last` integer,
	`memory_sum` real NOT NULL,
	`memory_count` integer NOT NULL,
	`memory_max` integer,
	`memory_last` integer,
	`utilization_sum` real NOT NULL,
	`utilization_count` integer NOT NULL,
	`utilization_max` integer,
	`utilization_last` integer,
	PRIMARY KEY(`minute`, `gpu_id`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `gpu_power_minute` (
	`minute` integer PRIMARY KEY NOT NULL,
	`power_draw_w` real NOT NULL,
	`mean_power_draw_w` real
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
CREATE TABLE `instances` (
	`id` text PRIMARY KEY NOT NULL,
	`beat` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `key_endings` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`key_id` integer NOT NULL,
	`ended_at` integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE `key_leases` (
	`key_id` integer NOT NULL,
	`instance` text NOT NULL,
	`version` integer NOT NULL,
	`places` integer NOT NULL,
	`tokens` integer NOT NULL,
	PRIMARY KEY(`key_id`, `instance`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `key_refusals` (
	`day` integer NOT NULL,
	`key_id` integer NOT NULL,
	`requests` integer NOT NULL,
	PRIMARY KEY(`day`, `key_id`)
) WITHOUT ROWID;
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
	`output_tokens` integer NOT NULL,
	`estimated_tokens` integer DEFAULT 0 NOT NULL,
	`expires_at` integer,
	`rules` text,
	`owner` text,
	`note` text,
	`tags` text
);
--> statement-breakpoint
CREATE UNIQUE INDEX `keys_key_unique` ON `keys` (`key`);--> statement-breakpoint
CREATE TABLE `latency_hour` (
	`hour` integer NOT NULL,
	`model` text NOT NULL,
	`request_count` integer NOT NULL,
	`first_byte` text NOT NULL,
	`duration` text NOT NULL,
	`tokens_per_second` text NOT NULL,
	`queue_wait` text DEFAULT '' NOT NULL,
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
	`queue_wait` text DEFAULT '' NOT NULL,
	PRIMARY KEY(`minute`, `model`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `lease_seconds` (
	`key_id` integer NOT NULL,
	`second` integer NOT NULL,
	`writer` text NOT NULL,
	`requests` integer NOT NULL,
	`tokens` integer NOT NULL,
	PRIMARY KEY(`key_id`, `second`, `writer`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `login_attempts` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`address` text NOT NULL,
	`attempted_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `login_attempts_address` ON `login_attempts` (`address`,`attempted_at`);--> statement-breakpoint
CREATE INDEX `login_attempts_time` ON `login_attempts` (`attempted_at`);--> statement-breakpoint
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
CREATE TABLE `owned` (
	`id_hash` text PRIMARY KEY NOT NULL,
	`key_id` integer NOT NULL,
	`backend` text,
	`used_at` integer NOT NULL
) WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `owned_key` ON `owned` (`key_id`);--> statement-breakpoint
CREATE INDEX `owned_time` ON `owned` (`used_at`);--> statement-breakpoint
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
	`request_class` text,
	`method` text NOT NULL,
	`path` text NOT NULL,
	`model_asked` text,
	`model_sent` text,
	`backend` text,
	`reason` text,
	`status` integer NOT NULL,
	`outcome` text NOT NULL,
	`code` text,
	`cause` text,
	`flags` integer NOT NULL,
	`input_tokens` integer,
	`output_tokens` integer,
	`cached_input_tokens` integer,
	`reasoning_tokens` integer,
	`estimated_tokens` integer,
	`expected_cached_tokens` integer,
	`conversation` integer,
	`cache_loss` text,
	`sends` integer,
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
CREATE TABLE `sessions` (
	`id_hash` text PRIMARY KEY NOT NULL,
	`csrf_token` text NOT NULL,
	`username` text NOT NULL,
	`expires_at` integer NOT NULL,
	`created_at` integer,
	`address` text,
	`client` text
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
	`beside_tokens` integer DEFAULT 0 NOT NULL,
	`estimated_tokens` integer DEFAULT 0 NOT NULL,
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
--> statement-breakpoint
CREATE TABLE `usage_model_day` (
	`day` integer NOT NULL,
	`key_id` integer NOT NULL,
	`model` text NOT NULL,
	`request_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cached_input_tokens` integer NOT NULL,
	`reasoning_tokens` integer NOT NULL,
	`cached_beside_input_tokens` integer NOT NULL,
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
	`reasoning_tokens` integer NOT NULL,
	`cached_beside_input_tokens` integer NOT NULL,
	PRIMARY KEY(`hour`, `key_id`, `model`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `usage_model_month` (
	`month` integer NOT NULL,
	`key_id` integer NOT NULL,
	`model` text NOT NULL,
	`request_count` integer NOT NULL,
	`input_tokens` integer NOT NULL,
	`output_tokens` integer NOT NULL,
	`cached_input_tokens` integer NOT NULL,
	`reasoning_tokens` integer NOT NULL,
	`cached_beside_input_tokens` integer NOT NULL,
	PRIMARY KEY(`month`, `key_id`, `model`)
) WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `usage_journal` (
	`id` integer PRIMARY KEY NOT NULL,
	`ledger` text NOT NULL,
	`flush` integer NOT NULL,
	`usage` text NOT NULL
);
