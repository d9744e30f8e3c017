-- Triggers and functions: c95b3f046f0ae7d7
ALTER TABLE "keys" ADD COLUMN "user_id" bigint;--> statement-breakpoint
ALTER TABLE "subjects" ADD COLUMN "signed_in_at" bigint;--> statement-breakpoint
ALTER TABLE "subjects" ADD COLUMN "refresh_token" text;--> statement-breakpoint
ALTER TABLE "subjects" ADD COLUMN "refresh_checked_at" bigint;--> statement-breakpoint
ALTER TABLE "subjects" ADD COLUMN "team_by_provider" boolean DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "user_id" bigint;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "role" text;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "provider_sid" text;