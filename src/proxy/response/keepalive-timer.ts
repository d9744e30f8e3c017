export interface KeepaliveTimer {
  /** A byte passed: the silence begins anew. */
  restart(): void;
  stop(): void;
}

/**
 * Calls back after `silenceMs` without a restart, and again after each further such silence. A restart only notes the
 * time; the one timer finds out when it fires whether it has to wait longer.
 */
export function startKeepaliveTimer(silenceMs: number, onSilence: () => void): KeepaliveTimer {
  let silentSince = performance.now();
  let timer = setTimeout(check, silenceMs);

  function check(): void {
    const remainingMs = silentSince + silenceMs - performance.now();
    // Set before the callback, which may stop it.
    timer = setTimeout(check, remainingMs > 0 ? remainingMs : silenceMs);
    if (remainingMs > 0) return;
    silentSince = performance.now();
    onSilence();
  }

  return {
    restart() {
      silentSince = performance.now();
    },
    stop() {
      clearTimeout(timer);
    },
  };
}
