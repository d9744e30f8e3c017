-- Triggers and functions: 52202da62431ecad
ALTER TABLE "request_log" ADD COLUMN "message" text;