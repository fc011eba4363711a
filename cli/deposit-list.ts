/** `causeway deposits list`: what the deposit API of a running kit knows. */
import { atokenToToken } from "../chain/units.js";
import { parseAddress } from "../chain/address.js";
import { readSecretFile } from "../runtime/secret-file.js";
import type { CommandContext } from "./command-context.js";
import { createExchangeClient } from "./exchange-client.js";
import { homePaths } from "./home.js";
import { loadKitConfig } from "./kit-config.js";

/** Lists the deposits to one address, oldest first. */
export async function runListDeposits(
  context: CommandContext,
  options: { readonly address: string },
): Promise<number> {
  const { depositUrl, withdrawalUrl } = loadKitConfig(context).endpoints;
  const apiKey = readSecretFile(homePaths(context.home).apiKey);
  const client = createExchangeClient({ depositUrl, withdrawalUrl, apiKey });
  const deposits = await client.depositsTo(parseAddress(options.address), context.signal);
  if (context.json) {
    const rows = deposits.map((row) => ({ ...row, amountAtoken: row.amountAtoken.toString() }));
    context.print(JSON.stringify({ schemaVersion: 1, deposits: rows }));
    return 0;
  }
  for (const { blockNumber, txHash, amountAtoken, status } of deposits) {
    const amount = atokenToToken(amountAtoken);
    context.print(`  block ${blockNumber}  ${txHash}  ${amount} TOKEN  ${status}`);
  }
  if (deposits.length === 0) context.print("No deposit to this address is known.");
  return 0;
}
