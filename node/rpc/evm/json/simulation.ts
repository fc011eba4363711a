/** Simulated blocks as JSON text: blocks in their usual shape, with the outcome of each call. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { bytesToHex, toQuantity } from "../../../../chain/hex.js";
import type { SimulatedBlock, SimulatedCall } from "../../../execution/calls/call-port.js";
import { blockJson, logJson, placeOf } from "../encode.js";
import { revertFault, RPC_ERROR_NUMBERS } from "../errors.js";

/** Logs that are written between two turns of the event loop: less than 5 ms. */
const LOGS_PER_TURN = 500;

/** The answer of eth_simulateV1, written in slices: other work of the node gets its turns. */
export async function simulationJson(
  blocks: readonly SimulatedBlock[],
  full: boolean,
): Promise<string> {
  const texts: string[] = [];
  for (const block of blocks) {
    texts.push(await simulatedBlockJson(block, full));
    await nextTurn();
  }
  return `[${texts.join(",")}]`;
}

async function simulatedBlockJson(
  { block, calls }: SimulatedBlock,
  full: boolean,
): Promise<string> {
  const place = placeOf(block);
  const texts: string[] = [];
  let logIndex = 0;
  for (const [transactionIndex, call] of calls.entries()) {
    const mined = block.transactions[transactionIndex];
    if (mined === undefined) throw new Error("a simulated call has no transaction");
    const at = { place, transactionHash: mined.tx.hash, transactionIndex };
    const logs: string[] = [];
    for (const log of call.logs) {
      logs.push(logJson(log, { ...at, logIndex }));
      logIndex += 1;
      if (logIndex % LOGS_PER_TURN === 0) await nextTurn();
    }
    texts.push(callJson(call, logs));
  }
  return `${blockJson(block, full).slice(0, -1)},"calls":[${texts.join(",")}]}`;
}

function callJson({ result, maxUsedGas }: SimulatedCall, logs: readonly string[]): string {
  const { outcome, gasUsed } = result;
  // What a REVERT gave back is its error's data.
  const returnData = outcome === "success" ? bytesToHex(result.returnData) : "0x";
  const error = outcome === "success" ? "" : `,"error":${JSON.stringify(errorOf(result))}`;
  return (
    `{"returnData":"${returnData}","logs":[${logs.join(",")}],"gasUsed":"${toQuantity(gasUsed)}",` +
    `"maxUsedGas":"${toQuantity(maxUsedGas)}",` +
    `"status":"${outcome === "success" ? "0x1" : "0x0"}"${error}}`
  );
}

/** Failures are part of an answer here; those that are no reverts have a number of their own. */
function errorOf(result: Exclude<SimulatedCall["result"], { outcome: "success" }>) {
  if (result.outcome === "error") {
    return { message: result.error, code: RPC_ERROR_NUMBERS.VM_EXECUTION };
  }
  const { message, data } = revertFault(result.returnData);
  return { message, code: RPC_ERROR_NUMBERS.EXECUTION_REVERTED, data };
}
