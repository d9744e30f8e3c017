ALTER TABLE "counted_responses" ADD COLUMN "estimated_tokens" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "keys" ADD COLUMN "estimated_tokens" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "request_log" ADD COLUMN "estimated_tokens" bigint;--> statement-breakpoint
ALTER TABLE "request_log" ADD COLUMN "sends" bigint;--> statement-breakpoint
ALTER TABLE "usage_day" ADD COLUMN "beside_tokens" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_day" ADD COLUMN "estimated_tokens" bigint DEFAULT 0 NOT NULL;