/**
 * Modules of SDK chains that wallets and their libraries know and this chain does not have, and what
 * serves the same end here: who meets a refusal is told what to do instead.
 */

const INSTEAD: Readonly<Record<string, string>> = {
  authz: "every account signs its own messages",
  feegrant: "who signs pays, so leave fee.granter and fee.payer empty",
  group: "an account of several people is a contract",
  nft: "tokens of one piece are contracts (ERC-721)",
  crisis: "every block proves that no coin is missing",
  circuit: "nobody can switch messages off",
  vesting: "coins are locked by the genesis alone",
  ibc: "send to accounts of this chain, addr1... or 0x...",
};

/** Type URLs of messages, paths of methods and routes of REST, with the name of their module. */
const NAME = /^\/(?:cosmos[./]([a-z]+)|(ibc))[./]/;

/**
 * Says of a message, a method or a route of such a module that it is not here.
 * @param name type URL or path, as a client sent it
 * @returns undefined for every other name
 */
export function absentModuleText(name: string): string | undefined {
  const [, ofSdk, ibc] = NAME.exec(name) ?? [];
  const module = ofSdk ?? ibc ?? "";
  if (!Object.hasOwn(INSTEAD, module)) return undefined;
  return `this chain has no x/${module}: ${INSTEAD[module] ?? ""}`;
}
