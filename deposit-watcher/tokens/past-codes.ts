/**
 * What was held before a first block is the word of the code that the contract ran then. Where nobody has
 * accepted that code, nothing is booked by it.
 */
import { withCodeOfNobody } from "../../ledger/assets/token-state.js";
import type { TokenAsset } from "../../ledger/assets/asset-registry.js";
import type { StateAt } from "../../rpc-client/at.js";
import type { EvmClient } from "../../rpc-client/evm-client.js";
import type { RpcOptions } from "../../rpc-client/json-rpc.js";
import type { SqlDatabase } from "../../runtime/sql/sql.js";

/**
 * Those of the tokens whose contracts ran code after a block that is not accepted and never was. Not where
 * no contract was: of that nobody has any.
 * @param options.known what the node has to have; see `RpcOptions`
 * @throws the faults of node and database
 */
export async function ofOtherCode(
  {
    database,
    node,
  }: { readonly database: SqlDatabase; readonly node: Pick<EvmClient, "tokenCodes"> },
  tokens: readonly Pick<TokenAsset, "symbol" | "contract">[],
  { at, ...options }: { readonly at: StateAt } & Pick<RpcOptions, "signal" | "known">,
): Promise<ReadonlySet<string>> {
  if (tokens.length === 0) return new Set();
  const queries = tokens.map(({ contract }) => ({ contract, at }));
  const codes = await node.tokenCodes(queries, options);
  const seen = tokens.flatMap(({ symbol: asset }, index) => {
    const code = codes[index];
    return code === undefined ? [] : [{ asset, ...code }];
  });
  return withCodeOfNobody(database, seen);
}
