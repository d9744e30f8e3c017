CREATE TABLE "gpu_hour" (
	"hour" bigint NOT NULL,
	"gpu_id" bigint NOT NULL,
	"power_sum" double precision NOT NULL,
	"power_count" bigint NOT NULL,
	"power_max" double precision,
	"power_last" double precision,
	"temp_sum" double precision NOT NULL,
	"temp_count" bigint NOT NULL,
	"temp_max" bigint,
	"temp_last" bigint,
	"memory_sum" double precision NOT NULL,
	"memory_count" bigint NOT NULL,
	"memory_max" bigint,
	"memory_last" bigint,
	"utilization_sum" double precision NOT NULL,
	"utilization_count" bigint NOT NULL,
	"utilization_max" bigint,
	"utilization_last" bigint,
	CONSTRAINT "gpu_hour_hour_gpu_id_pk" PRIMARY KEY("hour","gpu_id")
);
--> statement-breakpoint
CREATE TABLE "gpu_minute" (
	"minute" bigint NOT NULL,
	"gpu_id" bigint NOT NULL,
	"power_sum" double precision NOT NULL,
	"power_count" bigint NOT NULL,
	"power_max" double precision,
	"power_last" double precision,
	"temp_sum" double precision NOT NULL,
	"temp_count" bigint NOT NULL,
	"temp_max" bigint,
	"temp_last" bigint,
	"memory_sum" double precision NOT NULL,
	"memory_count" bigint NOT NULL,
	"memory_max" bigint,
	"memory_last" bigint,
	"utilization_sum" double precision NOT NULL,
	"utilization_count" bigint NOT NULL,
	"utilization_max" bigint,
	"utilization_last" bigint,
	CONSTRAINT "gpu_minute_minute_gpu_id_pk" PRIMARY KEY("minute","gpu_id")
);
--> statement-breakpoint
ALTER TABLE "gpu_latest" ADD COLUMN "host" text;--> statement-breakpoint
ALTER TABLE "gpu_latest" ADD COLUMN "host_changed_at" bigint;--> statement-breakpoint
ALTER TABLE "gpu_latest" ADD COLUMN "other_host" text;--> statement-breakpoint
ALTER TABLE "gpu_power_minute" ADD COLUMN "mean_power_draw_w" double precision;