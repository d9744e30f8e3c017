ALTER TABLE `counted_responses` ADD `estimated_tokens` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `keys` ADD `estimated_tokens` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `request_log` ADD `estimated_tokens` integer;--> statement-breakpoint
ALTER TABLE `request_log` ADD `sends` integer;--> statement-breakpoint
ALTER TABLE `usage_day` ADD `beside_tokens` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `usage_day` ADD `estimated_tokens` integer DEFAULT 0 NOT NULL;