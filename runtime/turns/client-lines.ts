/**
 * Lines of clients that wait for the same: each client has one, and turns go from client to client, however
 * many each of them waits for. Where there is no room for one more, the last in the longest line goes.
 */

/** What waits, and whose it is: clients that cannot be told apart count as one. */
export interface OfClient {
  readonly client: string;
}

/** Those who wait, by client. */
export class ClientLines<Item extends OfClient> {
  /** In the order of the clients' turns; no line is empty. */
  private readonly lines = new Map<string, Item[]>();
  private count = 0;

  /** All that wait. */
  get size(): number {
    return this.count;
  }

  /** All of a client's that wait. */
  sizeOf(client: string): number {
    return this.lines.get(client)?.length ?? 0;
  }

  /** Adds one behind its client's others. */
  add(item: Item): void {
    const own = this.lines.get(item.client) ?? [];
    own.push(item);
    this.lines.set(item.client, own);
    this.count += 1;
  }

  /**
   * Takes out whose turn it is; its client goes behind all others.
   * @param isDue whether a client may have a turn now; those who may not keep their places
   */
  next(isDue: (client: string) => boolean = () => true): Item | undefined {
    for (const [client, line] of this.lines) {
      const [item] = line;
      if (item === undefined || !isDue(client)) continue;
      this.remove(item);
      if (this.lines.delete(client)) this.lines.set(client, line);
      return item;
    }
    return undefined;
  }

  /** Takes one out that is not waited for any more; nothing where it does not wait. */
  remove(item: Item): void {
    const line = this.lines.get(item.client) ?? [];
    const place = line.indexOf(item);
    if (place < 0) return;
    line.splice(place, 1);
    if (line.length === 0) this.lines.delete(item.client);
    this.count -= 1;
  }

  /**
   * Takes out for whom there is no room once one more has come.
   * @param newest who waits here; of lines that are equally long its own counts as the longest
   * @param sharing all lines that share the room, these among them
   * @returns the last in the longest line, which may be the newest
   */
  refuseOne(newest: Item, sharing: readonly ClientLines<Item>[] = [this]): Item {
    let longest = this.lines.get(newest.client) ?? [];
    for (const line of sharing.flatMap(({ lines }) => [...lines.values()])) {
      if (line.length > longest.length) longest = line;
    }
    const last = longest.at(-1) ?? newest;
    for (const lines of sharing) lines.remove(last);
    return last;
  }

  /** Takes all out. */
  clear(): readonly Item[] {
    const items = [...this.lines.values()].flat();
    this.lines.clear();
    this.count = 0;
    return items;
  }
}
