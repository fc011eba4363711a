/**
 * Connections that have dialled in and not yet proved a key. Whoever opens one and says nothing holds a
 * place until it is given up, and costs himself nothing: places are bounded for each address, so that
 * nobody takes them all.
 */
import { openFileLimit } from "../../../runtime/files/open-file-limit.js";
import { groupOf, siteOf } from "./address-group.js";

/** Places of one address; many nodes may live behind one, and dial at once. */
const MAX_PER_SITE = 16;

/** The same as a part of all places, where these are few. */
const SITE_SHARE = 1 / 4;

/** Places of the addresses of one provider. */
const MAX_PER_GROUP = 64;

/** The same as a part of all places. */
const GROUP_SHARE = 1 / 2;

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

  private readonly sitePlaces: number;
  private readonly groupPlaces: number;

  /** @param places in all */
  constructor(private readonly places = mostPending()) {
    const part = (most: number, share: number) =>
      Math.max(1, Math.min(most, Math.floor(places * share)));
    this.sitePlaces = part(MAX_PER_SITE, SITE_SHARE);
    this.groupPlaces = part(MAX_PER_GROUP, GROUP_SHARE);
  }

  /**
   * A connection has come in; `end` has to follow.
   * @returns whether there is a place for it
   */
  begin(name: string, ip: string): boolean {
    const [site, group] = [siteOf(ip), groupOf(ip)];
    const all = [...this.pending.values()];
    const hasRoom =
      all.length < this.places &&
      all.filter((one) => one.site === site).length < this.sitePlaces &&
      all.filter((one) => one.group === group).length < this.groupPlaces;
    if (hasRoom) this.pending.set(name, { site, group });
    return hasRoom;
  }

  /** It has become a peer's, or has ended. */
  end(name: string): void {
    this.pending.delete(name);
  }
}
