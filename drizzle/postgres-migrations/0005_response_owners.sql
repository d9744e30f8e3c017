ALTER TABLE "counted_responses" DROP CONSTRAINT "counted_responses_pkey";--> statement-breakpoint
ALTER TABLE "counted_responses" ADD COLUMN "key_id" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "counted_responses" ALTER COLUMN "key_id" DROP DEFAULT;--> statement-breakpoint
ALTER TABLE "counted_responses" ADD COLUMN "creates" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "counted_responses" ALTER COLUMN "creates" DROP DEFAULT;--> statement-breakpoint
ALTER TABLE "counted_responses" ADD COLUMN "made_at" bigint;--> statement-breakpoint
ALTER TABLE "counted_responses" ADD CONSTRAINT "counted_responses_id_hash_key_id_pk" PRIMARY KEY("id_hash","key_id");