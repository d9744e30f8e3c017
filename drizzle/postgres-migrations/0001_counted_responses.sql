CREATE TABLE "counted_responses" (
	"id_hash" text PRIMARY KEY NOT NULL,
	"input_tokens" bigint NOT NULL,
	"output_tokens" bigint NOT NULL,
	"counted_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE INDEX "counted_responses_time" ON "counted_responses" USING btree ("counted_at");