/** A validator's consensus address, as the SDK's command line takes it. */
import { consensusText } from "../../chain/address.js";
import { validatorAddress } from "../../chain/consensus/validator-set.js";
import { consensusKeyBytes, consensusKeySchema, parseJson } from "../transactions/values.js";

/**
 * The address of a key in the SDK's JSON; any other text as it is, for the node to read.
 * @throws USAGE for JSON that is no consensus key
 */
export function consensusAddressIn(text: string): string {
  if (!text.startsWith("{")) return text;
  const key = consensusKeyBytes(parseJson(text, "The consensus key", consensusKeySchema));
  return consensusText(validatorAddress(key));
}
