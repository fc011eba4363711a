/** Places for connections that stay open: so many at all, and of them a share for each client. */
import { clientOf, isLoopback } from "./client-address.js";

/** Of all places, the part that one client may have where nothing else is said. */
const USUAL_SHARE = 1 / 10;

/** Which limits hold. */
export interface ClientPlacesOptions {
  /** Places in all. */
  readonly most: number;
  /** True counts clients of this machine, too; a proxy or the kit's own parts may speak for many. */
  readonly limitsLoopback?: boolean;
  /** Of all places, the part that one client may have; default a tenth. */
  readonly share?: number;
}

/** Who has how many places. */
export class ClientPlaces {
  readonly #taken = new Map<string, number>();
  #size = 0;

  constructor(private readonly options: ClientPlacesOptions) {}

  /** Places that are taken. */
  get size(): number {
    return this.#size;
  }

  /** Whether there is one more for whoever is at an address. */
  hasRoom(remoteAddress: string | undefined): boolean {
    const { most, limitsLoopback = false, share = USUAL_SHARE } = this.options;
    if (this.#size >= most) return false;
    const client = clientOf(remoteAddress);
    if (!limitsLoopback && isLoopback(client)) return true;
    return (this.#taken.get(client) ?? 0) < Math.max(1, Math.floor(most * share));
  }

  /** Takes one, whether there is room or not. @returns gives it back, once */
  take(remoteAddress: string | undefined): () => void {
    const client = clientOf(remoteAddress);
    this.#change(client, 1);
    let isTaken = true;
    return () => {
      if (isTaken) this.#change(client, -1);
      isTaken = false;
    };
  }

  #change(client: string, by: 1 | -1): void {
    this.#size += by;
    const count = (this.#taken.get(client) ?? 0) + by;
    if (count === 0) this.#taken.delete(client);
    else this.#taken.set(client, count);
  }
}
