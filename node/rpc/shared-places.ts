/**
 * Room of a node that anybody may fill, such as what subscriptions keep: nobody alone is to keep the others
 * out, and who is alone, or speaks for many, is not to be narrowed for others who are not there.
 */
import { ClientPlaces } from "../../runtime/turns/client-places.js";

/** The part of the room that whoever comes may fill; then each has a tenth, and this machine what is left. */
const UNSHARED = 1 / 2;

/** So many places, shared by clients of other machines. */
export function sharedPlaces(most: number): ClientPlaces {
  return new ClientPlaces({ most, unshared: UNSHARED });
}
