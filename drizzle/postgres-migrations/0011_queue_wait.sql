ALTER TABLE "latency_hour" ADD COLUMN "queue_wait" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "latency_minute" ADD COLUMN "queue_wait" text DEFAULT '' NOT NULL;