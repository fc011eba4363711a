/** Who wants to hear of something; a listener that throws is reported and does not stop others. */

/** A list of listeners. */
export class Listeners<T> {
  private readonly all = new Set<(payload: T) => void>();

  constructor(private readonly onError: (error: unknown) => void) {}

  /** Adds one and returns the function that ends its subscription. */
  add(listener: (payload: T) => void): () => void {
    this.all.add(listener);
    return () => {
      this.all.delete(listener);
    };
  }

  /** Calls every listener in the order of subscription. */
  emit(payload: T): void {
    for (const listener of this.all) {
      try {
        listener(payload);
      } catch (error) {
        this.onError(error);
      }
    }
  }
}
