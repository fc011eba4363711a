/** Both engines of the node, for the state tests. */
import { bytesToAddress, parseAddress } from "../../chain/address.js";
import { bytesToHash32 } from "../../chain/hex.js";
import { createMachine } from "../../node/execution/evm/evm.js";
import { Engine } from "../../node/execution/interpreter/engine.js";
import type { RunMessage } from "./state-case.js";

/** Chain id of all fixtures. */
const CHAIN_ID = 1n;

const causeway: RunMessage = (message, block, state) =>
  new Engine({ chainId: CHAIN_ID, state }).run(message, block);

const ethereumjs: RunMessage = async (message, block, state) => {
  const machine = await createMachine(CHAIN_ID, state);
  const { execResult } = await machine.run(message, block);
  const isWell = execResult.exceptionError === undefined;
  const created = execResult.createdAddresses ?? new Set();
  const destroyed = [...(execResult.selfdestruct?.keys() ?? [])].filter((key) => created.has(key));
  await machine.evm.journal.cleanup();
  return {
    gasUsed: execResult.executionGasUsed,
    gasRefund: execResult.gasRefund ?? 0n,
    destroyed: isWell ? destroyed.map((text) => parseAddress(text)) : [],
    logs: isWell
      ? (execResult.logs ?? []).map(([address, topics, data]) => ({
          address: bytesToAddress(address),
          topics: topics.map((topic) => bytesToHash32(topic)),
          data,
        }))
      : [],
  };
};

/** By the name that `--engine` takes. */
export const ENGINES: Readonly<Record<string, RunMessage>> = { causeway, ethereumjs };
