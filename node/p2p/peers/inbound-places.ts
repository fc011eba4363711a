/** Who has to leave when all places are taken and somebody comes from elsewhere. */
import { groupOf } from "./address-group.js";

/** A connection that takes a place. */
export interface PlaceHolder {
  readonly remoteIp: string;
  readonly connectedAtMs: number;
}

/**
 * While places are free many peers may share one address. When all are taken they are divided between
 * the groups of addresses: the newest of the group with most places leaves, if that group keeps as many
 * as the newcomer's gets.
 * @param ip of the newcomer
 * @returns undefined when the newcomer has to stay outside
 */
export function placeFor<T extends PlaceHolder>(ip: string, holders: readonly T[]): T | undefined {
  const groups = new Map<string, T[]>();
  for (const holder of holders) {
    const group = groupOf(holder.remoteIp);
    groups.set(group, [...(groups.get(group) ?? []), holder]);
  }
  const own = groups.get(groupOf(ip))?.length ?? 0;
  const [largest = []] = [...groups.values()].toSorted((one, other) => other.length - one.length);
  if (largest.length <= own + 1) return undefined;
  return largest.toSorted((one, other) => other.connectedAtMs - one.connectedAtMs)[0];
}
