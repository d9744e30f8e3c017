import script from "./push-gpu.sh" with { type: "text" };

/** The pusher for hosts that shall not carry the whole program: POSIX sh, nvidia-smi, awk and curl. */
export const pushGpuScript: string = script;
