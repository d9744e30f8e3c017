ALTER TABLE `latency_hour` ADD `queue_wait` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `latency_minute` ADD `queue_wait` text DEFAULT '' NOT NULL;