import { A } from "@solidjs/router";
import { createUniqueId, type JSX } from "solid-js";
import { gibibytes, watts } from "../lib/format.ts";
import { Skeleton } from "../ui/skeleton.tsx";
import { GpuName } from "./gpu-name.tsx";
import { GpuNotes } from "./gpu-notes.tsx";
import { isFull, isHot, isStale } from "./gpu-state.ts";
import type { Gpu } from "./queries.ts";
import { useShownAt } from "./shown-at.ts";

export function GpuCard(props: { gpu: Gpu }): JSX.Element {
  const { at, isOld } = useShownAt();
  const stale = (): boolean => isOld() || isStale(props.gpu, at());
  return (
    <article class="gpu" classList={{ stale: stale() }} aria-label={`GPU ${props.gpu.gpu_id}, ${props.gpu.name}`}>
      <header>
        <h3>
          <A href={`/gpus/${props.gpu.gpu_id}`}>GPU {props.gpu.gpu_id}</A>
        </h3>
        <p>
          <GpuName name={props.gpu.name} />
        </p>
        <p class="gpu-notes">
          <GpuNotes gpu={props.gpu} />
        </p>
      </header>
      <Gauge label="Utilisation" value={props.gpu.utilization_pct} max={100} text={`${props.gpu.utilization_pct}%`} />
      <Gauge
        label="Memory"
        value={props.gpu.memory_used_mb}
        max={props.gpu.memory_total_mb ?? 0}
        text={`${gibibytes(props.gpu.memory_used_mb ?? 0)} of ${gibibytes(props.gpu.memory_total_mb ?? 0)} GiB`}
        tone={!stale() && isFull(props.gpu) ? "warn" : undefined}
      />
      <Readings
        power={props.gpu.power_draw_w === null ? "–" : watts(props.gpu.power_draw_w)}
        temperature={props.gpu.temp_c === null ? "–" : `${props.gpu.temp_c} °C`}
        tone={!stale() && isHot(props.gpu) ? "bad" : undefined}
      />
    </article>
  );
}

/** The same rows as a card, so that both have the same height. */
export function SkeletonGpuCard(): JSX.Element {
  return (
    <div class="gpu" aria-hidden="true">
      <header>
        <h3>GPU</h3>
        <p>
          <Skeleton />
        </p>
      </header>
      <Gauge label="Utilisation" value={null} max={0} text="" />
      <Gauge label="Memory" value={null} max={0} text="" />
      <Readings power="–" temperature="–" />
    </div>
  );
}

function Readings(props: { power: string; temperature: string; tone?: "bad" | undefined }): JSX.Element {
  return (
    <dl>
      <div>
        <dt>Power</dt>
        <dd>{props.power}</dd>
      </div>
      <div>
        <dt>Temperature</dt>
        <dd data-tone={props.tone}>{props.temperature}</dd>
      </div>
    </dl>
  );
}

/** A value that the host does not report is a dash over an empty bar. */
function Gauge(props: {
  label: string;
  value: number | null;
  max: number;
  text: string;
  tone?: "warn" | undefined;
}): JSX.Element {
  const id = createUniqueId();
  const known = (): boolean => props.value !== null && props.max > 0;
  return (
    <div class="gauge" data-tone={props.tone}>
      <span id={id}>{props.label}</span>
      <span class="gauge-value">{known() ? props.text : "–"}</span>
      <meter aria-labelledby={id} min="0" max={props.max || 1} value={known() ? (props.value ?? 0) : 0} />
    </div>
  );
}
