/** Places for connections and other things that stay: so many at all, and of them a share for each client. */
import { clientOf, isLoopback } from "./client-address.js";

/** Of all places, the part that one client may have where nothing else is said. */
const USUAL_SHARE = 1 / 10;

/** Which limits hold. */
export interface ClientPlacesOptions {
  /** Places in all. */
  readonly most: number;
  /**
   * True holds clients of this machine to their share, too, and who is not told apart; a proxy or the kit's
   * own parts may speak for many.
   */
  readonly limitsLoopback?: boolean;
  /** Of all places, the part that one client may have; default a tenth. */
  readonly share?: number;
  /** The part of all places up to which nobody is held to his share; default 0. */
  readonly unshared?: number;
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

  /** Whether there are so many more for whoever is at an address, or is the client of that name. */
  hasRoom(remoteAddress: string | undefined, count = 1): boolean {
    const { most, limitsLoopback = false, share = USUAL_SHARE, unshared = 0 } = this.options;
    const size = this.#size + count;
    if (count === 0) return true;
    if (size > most) return false;
    if (size <= most * unshared) return true;
    const client = clientOf(remoteAddress);
    if (!limitsLoopback && (client === "" || isLoopback(client))) return true;
    return (this.#taken.get(client) ?? 0) + count <= Math.max(1, Math.floor(most * share));
  }

  /** Takes so many, whether there is room or not. @returns gives them back, once */
  take(remoteAddress: string | undefined, count = 1): () => void {
    const client = clientOf(remoteAddress);
    this.#change(client, count);
    let isTaken = true;
    return () => {
      if (isTaken) this.#change(client, -count);
      isTaken = false;
    };
  }

  #change(client: string, by: number): void {
    this.#size += by;
    const count = (this.#taken.get(client) ?? 0) + by;
    if (count === 0) this.#taken.delete(client);
    else this.#taken.set(client, count);
  }
}
