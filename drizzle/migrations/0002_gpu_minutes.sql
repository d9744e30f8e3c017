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
ALTER TABLE `gpu_latest` ADD `host` text;--> statement-breakpoint
ALTER TABLE `gpu_latest` ADD `host_changed_at` integer;--> statement-breakpoint
ALTER TABLE `gpu_latest` ADD `other_host` text;--> statement-breakpoint
ALTER TABLE `gpu_power_minute` ADD `mean_power_draw_w` real;