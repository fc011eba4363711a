/**
 * Connections that have dialled in and not yet proved a key. Whoever opens one and says nothing holds a
 * place until it is given up, and costs himself nothing: places are bounded for each address, so that
 * nobody takes them all.
 */
import { groupOf, siteOf } from "./address-group.js";

/** Places of one address; many nodes may live behind one, and dial at once. */
const MAX_PER_SITE = 16;

/** Places of the addresses of one provider. */
const MAX_PER_GROUP = 64;

/** Places in all. */
export const MAX_PENDING_INBOUND = 256;

interface Pending {
  readonly site: string;
  readonly group: string;
}

/** Handshakes under way, by the other end's address and port. */
export class PendingInbound {
  private readonly pending = new Map<string, Pending>();

  /**
   * A connection has come in; `end` has to follow.
   * @returns whether there is a place for it
   */
  begin(name: string, ip: string): boolean {
    const [site, group] = [siteOf(ip), groupOf(ip)];
    const all = [...this.pending.values()];
    const hasRoom =
      all.length < MAX_PENDING_INBOUND &&
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
