/**
 * eth_simulateV1: blocks that would follow a committed one, each on the state of the one before.
 * They are executed by the rules of real blocks; what is left out is what a client cannot know
 * beforehand: signatures, the end-of-block moves of fees and mint, and the state's root.
 */
import type { Address } from "../../../../chain/address.js";
import type { Hash32, Height } from "../../../../chain/hex.js";
import type { StateReader } from "../../../store/state-reader.js";
import type { BlockContext } from "../../message.js";
import { TraceBudget } from "../../tracers/tracer.js";
import { OverlaidState } from "../call-overrides.js";
import type { SimulationRequest } from "../call-port.js";
import type { WorkerSettings } from "../call-protocol.js";
import { planBlocks } from "./block-plan.js";
import { GasBudget, type SimulatedBlock, simulateBlock } from "./simulated-block.js";

/** The block that a simulation starts from. */
export interface BaseBlock extends BlockContext {
  readonly hash: Hash32;
}

/** What a simulation runs on. */
export interface SimulationEnvironment {
  readonly settings: WorkerSettings;
  /** The state after the base block. */
  readonly reader: StateReader;
  readonly base: BaseBlock;
}

/**
 * Simulates the blocks.
 * @throws SIMULATION_REFUSED, INVALID_OVERRIDE, TRACE_TOO_LARGE
 */
export async function simulate(
  request: SimulationRequest,
  { settings, reader, base }: SimulationEnvironment,
): Promise<readonly SimulatedBlock[]> {
  const state = new OverlaidState(reader);
  const gas = new GasBudget(settings.gasCap);
  const budget = new TraceBudget();
  const simulated: SimulatedBlock[] = [];
  const hashes = new Map<Height, Hash32>([[base.height, base.hash]]);
  const blockHash = (height: Height) => hashes.get(height) ?? base.blockHash(height);
  // What a client overrides of these two holds until it overrides them again, as in geth.
  let coinbase: Address = base.coinbase;
  let { gasLimit } = base;
  const { native } = base;
  let parentHash = base.hash;
  for (const planned of planBlocks(request.blocks, base)) {
    ({ coinbase = coinbase, gasLimit = gasLimit } = planned.blockOverrides);
    const block = await simulateBlock(planned, {
      ...request,
      settings,
      state,
      gas,
      budget,
      context: { coinbase, gasLimit, blockHash, ...(native && { native }) },
      parentHash,
    });
    simulated.push(block);
    parentHash = block.block.hash;
    hashes.set(planned.height, parentHash);
  }
  return simulated;
}
