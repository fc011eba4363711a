/** `causeway tokens state` and `accept-code`: which tokens are paused, and a person's word about one. */
import { toChecksumAddress } from "../../../chain/address.js";
import { readTokenAssets } from "../../../ledger/assets/asset-registry.js";
import { acceptCode, readTokenStates } from "../../../ledger/assets/token-state.js";
import { countOfOtherCode } from "../../../ledger/requests/unexplained-outflows.js";
import { closeIfBehind } from "../../../ledger/guard/ledger-guard.js";
import { CliError } from "../../errors.js";
import { withLedgerAlone } from "../../ledger/ledger-alone.js";
import { operatorName } from "../ledger-decisions.js";
import { refuseLate } from "../../ledger/late-node.js";
import { toJson } from "../../command-context.js";
import { type LedgerCommand, withLedger } from "../../ledger/ledger-tools.js";

/** What `accept-code` is given. */
export interface AcceptCodeOptions {
  /** Who decides; the user where absent. */
  readonly operator?: string | undefined;
}

/**
 * Prints each token of the ledger with its accepted code and whether it is paused.
 * @returns 0, or 1 when one is paused
 */
export async function runTokenStates(command: LedgerCommand): Promise<number> {
  return withLedgerAlone(command, async ({ database }) => {
    const tokens = await readTokenAssets(database);
    const states = await readTokenStates(database);
    const isPaused = [...states.values()].some((state) => state.isPaused);
    if (command.json) {
      const rows = tokens.map((token) => ({ ...token, state: states.get(token.symbol) ?? null }));
      command.print(toJson({ tokens: rows }));
      return isPaused ? 1 : 0;
    }
    for (const { symbol, contract } of tokens) {
      const state = states.get(symbol);
      const code = state?.codeHash ?? "no code seen yet";
      const stands = state?.isPaused === true ? `PAUSED: ${state.reason}` : "goes on";
      command.print(`  ${symbol}  ${toChecksumAddress(contract)}  ${code}  ${stands}`);
    }
    if (tokens.length === 0) command.print("The ledger keeps books of TOKEN alone.");
    return isPaused ? 1 : 0;
  });
}

/**
 * Lets a token go on with the code that its contract runs at this moment, where that is what it is paused
 * for: nobody has read any other.
 * @returns 0
 * @throws USAGE for an unknown token and one without code; INVALID_DECISION of `acceptCode`
 */
export async function runAcceptCode(
  command: LedgerCommand,
  symbol: string,
  options: AcceptCodeOptions,
): Promise<number> {
  const operator = operatorName(options.operator);
  return withLedger(command, async ({ database, node }) => {
    await closeIfBehind(database, command.home);
    // One that lacks the block of the change shows the code of before, with which the token would go on.
    await refuseLate(command, { database, node }, "Nothing was accepted.");
    const { signal } = command;
    const token = (await readTokenAssets(database)).find((one) => one.symbol === symbol);
    if (token === undefined) throw new CliError("USAGE", `no token is called ${symbol}.`);
    const height = await node.blockNumber({ signal });
    const [code] = await node.tokenCodes([{ contract: token.contract, at: height }], { signal });
    if (code === undefined) {
      throw new CliError("USAGE", `no contract is at ${toChecksumAddress(token.contract)}.`);
    }
    const accepted = { ...code, asset: symbol, height, by: operator };
    const setAside = await acceptCode(database, accepted);
    const outflows = await countOfOtherCode(database, symbol);
    if (command.json) {
      command.print(toJson({ asset: symbol, accepted: code, height, setAside, outflows }));
      return 0;
    }
    command.print(`${symbol} goes on with code ${code.codeHash}, as of block ${height}.`);
    if (setAside > 0) {
      command.print(
        `Deposits that go to suspense, as yet other code told of them: ${setAside}. Give those that ` +
          "arrived to their customers (causeway ledger assign-deposit), and take out the others (causeway " +
          "ledger adjust, with --deposit).",
      );
    }
    if (outflows > 0) {
      command.print(
        `Outflows of our addresses that code told of which was not accepted then: ${outflows}. Look at ` +
          "the balances (causeway reconcile, causeway ledger open): book what left (causeway ledger " +
          "accept-outflow), and say of the others that you looked at them (causeway withdrawals release " +
          "--acknowledge).",
      );
    }
    return 0;
  });
}
