/**
 * Connections that have dialled in and not yet proved a key. Whoever opens one and says nothing holds a
 * place until it is given up, and costs himself nothing: places are bounded for each address, so that
 * nobody takes them all.
 */
import { openFileLimit } from "../../../runtime/files/open-file-limit.js";
import { groupOf, siteOf } from "./address-group.js";

/** Places of one address; many nodes may live behind one, and dial at once. */
const MAX_PER_SITE = 16;

/** Places of the addresses of one provider. */
const MAX_PER_GROUP = 64;

/** Places in all, where files are plenty. */
const MAX_PENDING = 256;

/** Part of the files that a process may open which strangers may take: its own parts need them. */
const OPEN_FILE_SHARE = 1 / 16;

/**
 * Places in all.
 * @param openFiles that the process may have open
 */
export function mostPending(openFiles = openFileLimit()): number {
  return Math.min(MAX_PENDING, Math.floor(openFiles * OPEN_FILE_SHARE));
}

interface Pending {
  readonly site: string;
  readonly group: string;
}

/** Handshakes under way, by the other end's address and port. */
export class PendingInbound {
  private readonly pending = new Map<string, Pending>();

  /** @param places in all */
  constructor(private readonly places = mostPending()) {}

  /**
   * A connection has come in; `end` has to follow.
   * @returns whether there is a place for it
   */
  begin(name: string, ip: string): boolean {
    const [site, group] = [siteOf(ip), groupOf(ip)];
    const all = [...this.pending.values()];
    const hasRoom =
      all.length < this.places &&
      all.filter((one) => one.site === site).length < MAX_PER_SITE &&
      all.filter((one) => one.group === group).length < MAX_PER_GROUP;
    if (hasRoom) this.pending.set(name, { site, group });
    return hasRoom;
  }

  /** It has become a peer's, or has ended. */
  end(name: string): void {
    this.pending.delete(name);
  }
}
