import script from "./push-gpu.sh" with { type: "text" };

/** `push-gpu` for hosts that cannot run the binary: POSIX sh, nvidia-smi, awk and curl. */
export const pushGpuScript: string = script;
