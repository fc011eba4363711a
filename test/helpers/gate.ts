/** A door that a test opens once, to decide when something waiting goes on. */

/** `opened` resolves when `open` was called. */
export interface Gate {
  readonly opened: Promise<void>;
  readonly open: () => void;
}

/** Makes a closed gate. */
export function createGate(): Gate {
  const controller = new AbortController();
  return {
    opened: new Promise((resolve) => {
      controller.signal.addEventListener("abort", () => resolve());
    }),
    open: () => controller.abort(),
  };
}
