/**
 * Shapes of REST answers: which members there are, what kind of value each has, with which status a
 * request is answered. `test/fixtures/rpc/sdk-rest-shapes.json` has those of a node of cosmos/evm
 * (SDK 0.54), recorded by `record-rest-shapes.ts` from a chain of one validator.
 */

/** What stands in the places of routes, by name. */
export type Places = Readonly<Record<string, string>>;

/** A shape: a kind of single value, members by name, or a list with the shape of its elements. */
export type Shape = string | { readonly [member: string]: Shape } | readonly Shape[];

/** How a request is answered. */
export interface ShapedAnswer {
  readonly status: number;
  readonly shape: Shape;
}

const COSMOS = "/cosmos";

/** Routes with their places, as explorers and wallets ask them. */
export const ROUTES: readonly string[] = [
  `${COSMOS}/auth/v1beta1/accounts/{delegator}`,
  `${COSMOS}/auth/v1beta1/account_info/{delegator}`,
  `${COSMOS}/auth/v1beta1/accounts?pagination.limit=2`,
  `${COSMOS}/auth/v1beta1/params`,
  `${COSMOS}/auth/v1beta1/module_accounts/gov`,
  `${COSMOS}/auth/v1beta1/bech32`,
  `${COSMOS}/bank/v1beta1/balances/{delegator}`,
  `${COSMOS}/bank/v1beta1/balances/{nobody}`,
  `${COSMOS}/bank/v1beta1/balances/{delegator}/by_denom?denom={denom}`,
  `${COSMOS}/bank/v1beta1/balances/{delegator}/by_denom?denom=nothing`,
  `${COSMOS}/bank/v1beta1/spendable_balances/{delegator}`,
  `${COSMOS}/bank/v1beta1/supply`,
  `${COSMOS}/bank/v1beta1/supply?pagination.count_total=true&pagination.limit=1`,
  `${COSMOS}/bank/v1beta1/supply/by_denom?denom={denom}`,
  `${COSMOS}/bank/v1beta1/denoms_metadata`,
  `${COSMOS}/bank/v1beta1/denoms_metadata/{denom}`,
  `${COSMOS}/bank/v1beta1/denom_owners/{denom}?pagination.limit=1`,
  `${COSMOS}/bank/v1beta1/params`,
  `${COSMOS}/bank/v1beta1/send_enabled`,
  `${COSMOS}/base/tendermint/v1beta1/node_info`,
  `${COSMOS}/base/tendermint/v1beta1/syncing`,
  `${COSMOS}/base/tendermint/v1beta1/blocks/latest`,
  `${COSMOS}/base/tendermint/v1beta1/blocks/{height}`,
  `${COSMOS}/base/tendermint/v1beta1/validatorsets/latest`,
  `${COSMOS}/base/tendermint/v1beta1/validatorsets/{height}`,
  `${COSMOS}/base/node/v1beta1/config`,
  `${COSMOS}/base/node/v1beta1/status`,
  `${COSMOS}/consensus/v1/params`,
  `${COSMOS}/staking/v1beta1/validators`,
  `${COSMOS}/staking/v1beta1/validators?status=BOND_STATUS_UNBONDED`,
  `${COSMOS}/staking/v1beta1/validators/{operator}`,
  `${COSMOS}/staking/v1beta1/validators/{operator}/delegations`,
  `${COSMOS}/staking/v1beta1/validators/{operator}/delegations?pagination.limit=1&pagination.count_total=true`,
  `${COSMOS}/staking/v1beta1/validators/{operator}/delegations?pagination.limit=1&pagination.offset=1`,
  `${COSMOS}/staking/v1beta1/validators/{operator}/delegations/{delegator}`,
  `${COSMOS}/staking/v1beta1/validators/{operator}/delegations/{delegator}/unbonding_delegation`,
  `${COSMOS}/staking/v1beta1/validators/{operator}/unbonding_delegations`,
  `${COSMOS}/staking/v1beta1/delegations/{delegator}`,
  `${COSMOS}/staking/v1beta1/delegations/{nobody}`,
  `${COSMOS}/staking/v1beta1/delegators/{delegator}/unbonding_delegations`,
  `${COSMOS}/staking/v1beta1/delegators/{nobody}/unbonding_delegations`,
  `${COSMOS}/staking/v1beta1/delegators/{nobody}/redelegations`,
  `${COSMOS}/staking/v1beta1/delegators/{delegator}/validators`,
  `${COSMOS}/staking/v1beta1/delegators/{delegator}/validators/{operator}`,
  `${COSMOS}/staking/v1beta1/pool`,
  `${COSMOS}/staking/v1beta1/params`,
  `${COSMOS}/distribution/v1beta1/params`,
  `${COSMOS}/distribution/v1beta1/community_pool`,
  `${COSMOS}/distribution/v1beta1/delegators/{delegator}/rewards`,
  `${COSMOS}/distribution/v1beta1/delegators/{delegator}/rewards/{operator}`,
  `${COSMOS}/distribution/v1beta1/delegators/{delegator}/validators`,
  `${COSMOS}/distribution/v1beta1/delegators/{delegator}/withdraw_address`,
  `${COSMOS}/distribution/v1beta1/validators/{operator}`,
  `${COSMOS}/distribution/v1beta1/validators/{operator}/commission`,
  `${COSMOS}/distribution/v1beta1/validators/{operator}/outstanding_rewards`,
  `${COSMOS}/distribution/v1beta1/validators/{operator}/slashes`,
  `${COSMOS}/gov/v1/proposals`,
  `${COSMOS}/gov/v1/proposals?proposal_status=PROPOSAL_STATUS_REJECTED`,
  `${COSMOS}/gov/v1/proposals/{proposal}`,
  `${COSMOS}/gov/v1/proposals/{proposal}/deposits`,
  `${COSMOS}/gov/v1/proposals/{proposal}/deposits/{delegator}`,
  `${COSMOS}/gov/v1/proposals/{proposal}/votes`,
  `${COSMOS}/gov/v1/proposals/{proposal}/votes/{delegator}`,
  `${COSMOS}/gov/v1/proposals/{proposal}/tally`,
  `${COSMOS}/gov/v1/params/voting`,
  `${COSMOS}/gov/v1/params/tallying`,
  `${COSMOS}/gov/v1/params/deposit`,
  `${COSMOS}/gov/v1/constitution`,
  `${COSMOS}/gov/v1beta1/proposals`,
  `${COSMOS}/gov/v1beta1/proposals/{proposal}`,
  `${COSMOS}/gov/v1beta1/proposals/{proposal}/deposits`,
  `${COSMOS}/gov/v1beta1/proposals/{proposal}/votes`,
  `${COSMOS}/gov/v1beta1/proposals/{proposal}/votes/{delegator}`,
  `${COSMOS}/gov/v1beta1/proposals/{proposal}/tally`,
  `${COSMOS}/gov/v1beta1/params/voting`,
  `${COSMOS}/gov/v1beta1/params/tallying`,
  `${COSMOS}/gov/v1beta1/params/deposit`,
  `${COSMOS}/mint/v1beta1/inflation`,
  `${COSMOS}/mint/v1beta1/annual_provisions`,
  `${COSMOS}/mint/v1beta1/params`,
  `${COSMOS}/slashing/v1beta1/params`,
  `${COSMOS}/slashing/v1beta1/signing_infos`,
  `${COSMOS}/slashing/v1beta1/signing_infos/{consensus}`,
  `${COSMOS}/evidence/v1beta1/evidence`,
  `${COSMOS}/upgrade/v1beta1/current_plan`,
  `${COSMOS}/upgrade/v1beta1/applied_plan/nothing`,
  `${COSMOS}/upgrade/v1beta1/module_versions?module_name=bank`,
  `${COSMOS}/upgrade/v1beta1/authority`,
  `${COSMOS}/tx/v1beta1/txs/{tx}`,
  `${COSMOS}/tx/v1beta1/txs?query=tx.height={txHeight}`,
  `${COSMOS}/tx/v1beta1/txs?query=tx.height=999999`,
  `${COSMOS}/tx/v1beta1/txs/block/{txHeight}`,
  `${COSMOS}/evm/vm/v1/account/{hex}`,
  `${COSMOS}/evm/vm/v1/cosmos_account/{hex}`,
  `${COSMOS}/evm/vm/v1/balances/{hex}`,
  `${COSMOS}/evm/vm/v1/storage/{hex}/0x0`,
  `${COSMOS}/evm/vm/v1/codes/{hex}`,
  `${COSMOS}/evm/vm/v1/base_fee`,
  `${COSMOS}/evm/feemarket/v1/params`,
  `${COSMOS}/evm/feemarket/v1/base_fee`,
  `${COSMOS}/evm/feemarket/v1/block_gas`,
  // What is refused.
  "/nothing",
  `${COSMOS}/nothing/v1beta1/params`,
  `${COSMOS}/auth/v1beta1/accounts/{nobody}`,
  `${COSMOS}/auth/v1beta1/accounts/nonsense`,
  `${COSMOS}/bank/v1beta1/balances/nonsense`,
  `${COSMOS}/bank/v1beta1/balances/{delegator}?pagination.limit=x`,
  `${COSMOS}/bank/v1beta1/supply/by_denom?denom=`,
  `${COSMOS}/bank/v1beta1/denoms_metadata/nothing`,
  `${COSMOS}/staking/v1beta1/validators?status=NONSENSE`,
  `${COSMOS}/staking/v1beta1/validators?pagination.key=AA==&pagination.offset=1`,
  `${COSMOS}/staking/v1beta1/validators/nonsense`,
  `${COSMOS}/staking/v1beta1/validators/{nobodyOperator}`,
  `${COSMOS}/staking/v1beta1/validators/{operator}/delegations/{nobody}`,
  `${COSMOS}/staking/v1beta1/validators/{operator}/delegations/{nobody}/unbonding_delegation`,
  `${COSMOS}/distribution/v1beta1/delegators/{nobody}/rewards/{operator}`,
  `${COSMOS}/distribution/v1beta1/delegators/nonsense/rewards`,
  `${COSMOS}/distribution/v1beta1/validators/nonsense/commission`,
  `${COSMOS}/gov/v1/proposals/999`,
  `${COSMOS}/gov/v1/proposals/0`,
  `${COSMOS}/gov/v1/proposals/x`,
  `${COSMOS}/gov/v1/proposals/{proposal}/votes/{nobody}`,
  `${COSMOS}/gov/v1beta1/params/nothing`,
  `${COSMOS}/slashing/v1beta1/signing_infos/nonsense`,
  `${COSMOS}/base/tendermint/v1beta1/blocks/999999999`,
  `${COSMOS}/base/tendermint/v1beta1/blocks/x`,
  `${COSMOS}/tx/v1beta1/txs`,
  `${COSMOS}/tx/v1beta1/txs/${"AB".repeat(32)}`,
  `${COSMOS}/tx/v1beta1/txs/nonsense`,
];

/** Asks a route. @param places what stands in it */
export async function askRoute(base: string, route: string, places: Places): Promise<ShapedAnswer> {
  const path = route.replace(/\{(\w+)\}/g, (_all, name: string) => {
    const value = places[name];
    if (value === undefined) throw new RangeError(`nothing for ${name}`);
    return value;
  });
  const reply = await fetch(`${base}${path}`);
  const body: unknown = await reply.json();
  return { status: reply.status, shape: shapeOf(body) };
}

/** The shape of JSON. */
export function shapeOf(value: unknown): Shape {
  if (Array.isArray(value)) {
    const shapes = (value as readonly unknown[]).map(shapeOf);
    const distinct = new Map(shapes.map((shape) => [JSON.stringify(shape), shape]));
    return [...distinct.values()].slice(0, 4);
  }
  if (typeof value === "string") return kindOf(value);
  if (typeof value !== "object" || value === null) return value === null ? "null" : typeof value;
  const names = Object.keys(value).toSorted();
  return Object.fromEntries(names.map((name) => [name, shapeOf(Reflect.get(value, name))]));
}

/** Kinds of texts, the first one that fits. */
const KINDS: readonly (readonly [string, RegExp])[] = [
  ["empty", /^$/],
  ["integer", /^-?\d+$/],
  ["decimal", /^-?\d+\.\d{18}$/],
  ["short decimal", /^-?\d+\.\d+$/],
  ["seconds", /^\d+(\.\d+)?s$/],
  ["time", /^\d{4}-\d\d-\d\dT[\d:.]+Z$/],
  ["type url", /^\/[a-z0-9_.]+\.v\d+[a-z0-9]*\.[A-Za-z.0-9]+$/],
  ["0x", /^0x[0-9a-fA-F]*$/],
  ["UPPER HEX", /^([0-9A-F]{40}|[0-9A-F]{64})$/],
  ["bech32", /^(cosmos|addr)(valoper|valcons)?1[02-9ac-hj-np-z]{38,}$/],
  ["hash in base64", /^[A-Za-z0-9+/]{43}=$/],
];

function kindOf(text: string): string {
  // Names of enumerations are part of the shape.
  if (/^[A-Z]+(_[A-Z0-9]+)+$/.test(text)) return text;
  return KINDS.find(([, pattern]) => pattern.test(text))?.[0] ?? "text";
}
