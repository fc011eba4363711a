/**
 * Rows of the modules, in this process and without a network: MsgSends that are verified, executed
 * and stored in full blocks; and full blocks of transfers with 100 validators and 10,000
 * delegations beside the same blocks with four validators.
 */
import { type Address, parseAddress, toBech32, VALIDATOR_PREFIX } from "../../../chain/address.js";
import { signatureFault } from "../../../chain/cosmos/ante.js";
import { decodeCosmosTransaction } from "../../../chain/cosmos/cosmos-transaction.js";
import { signingKeyOf } from "../../../chain/consensus/ed25519.js";
import { validatorAddress } from "../../../chain/consensus/validator-set.js";
import { bytesToHex } from "../../../chain/hex.js";
import { packMessages, signDraft, type TxMessage } from "../../../cli/transactions/document.js";
import { Delegations } from "../../../node/modules/staking/delegation-record.js";
import { Validators } from "../../../node/modules/staking/validator-record.js";
import { createLocalGenesis, type Genesis } from "../../../node/settings/genesis.js";
import { firstModuleParams } from "../../../node/settings/module-params.js";
import { JournaledState } from "../../../node/state/journaled-state.js";
import { loadDescriptors } from "../../../runtime/files/descriptor-set.js";
import { ExecutionChain } from "../../helpers/chains/execution-chain.js";
import { type BenchRow, formatFigure } from "../report.js";
import { CHAIN_ID, createRecipients, createSenders, type Sender, signNext } from "../senders.js";

/** Names of the rows here, for `--only`. */
export const MODULE_ROWS = ["modules"] as const;

/** What the rows are run with. */
export interface ModuleRowsOptions {
  readonly quick: boolean;
  readonly say: (line: string) => void;
}

const TOKEN = 10n ** 18n;

/** Transactions of a block, and blocks that are timed after one that is not. */
const SIZES = {
  full: { sends: 5_000, transfers: 20_000, blocks: 4 },
  quick: { sends: 2_000, transfers: 8_000, blocks: 2 },
};

const SENDERS = 1_000;
const VALIDATORS = { few: 4, many: 100 };

/** Accounts that delegate to every validator. */
const DELEGATORS = 100;

/** Of the blocks with few validators; the modules' share of a full block is small. */
const AIM_RATIO = 0.9;

const SEND_GAS = 80_000n;
const DELEGATIONS_GAS = 30_000_000n;
/** Transactions with 100 delegations each: 20 fill a block's gas. */
const DELEGATIONS_PER_BLOCK = 20;

/** One chain with its accounts. */
interface BenchChain {
  readonly chain: ExecutionChain;
  readonly genesis: Genesis;
  readonly senders: readonly Sender[];
}

/** Runs the rows. */
export async function runModuleRows({ quick, say }: ModuleRowsOptions): Promise<BenchRow[]> {
  const sizes = quick ? SIZES.quick : SIZES.full;
  const few = await openChain(VALIDATORS.few);
  const many = await openChain(VALIDATORS.many);
  try {
    await delegateAll(many);
    say(`${VALIDATORS.many} validators, ${countDelegations(many)} delegations`);
    const sends = await timeBlocks(sizes.blocks, () => sendBlock(few, sizes.sends));
    say(`MsgSend: ${formatFigure(sends.perSecond)}/s`);
    // Block by block, so that both meet the same machine.
    const times = { few: 0, many: 0 };
    for (let block = 0; block <= sizes.blocks; block++) {
      for (const [name, one] of [
        ["few", few],
        ["many", many],
      ] as const) {
        const { perSecond, ms } = await timeBlocks(0, () => transferBlock(one, sizes.transfers));
        if (block > 0) times[name] += ms;
        say(`${one.genesis.validators.length} validators: ${formatFigure(perSecond)} transfers/s`);
      }
    }
    const perSecond = (ms: number) => (sizes.transfers * sizes.blocks * 1_000) / ms;
    return [
      {
        title: "MsgSend in full blocks: signature, execution, store",
        unit: "tx/s",
        ours: sends.perSecond,
        details: [`${sizes.sends} in a block, in one process, no network`],
      },
      {
        title: "full blocks of transfers, 100 validators and 10,000 delegations",
        unit: "tx/s",
        ours: perSecond(times.many),
        peer: perSecond(times.few),
        peerName: "4 validators",
        aim: { ratio: AIM_RATIO },
        details: [`${sizes.transfers} in a block; everybody signs, everybody is counted`],
      },
    ];
  } finally {
    await few.chain.close();
    await many.chain.close();
  }
}

async function openChain(validators: number): Promise<BenchChain> {
  const senders = createSenders(SENDERS, `modules ${validators}`);
  const plain = createLocalGenesis({
    network: "testnet",
    faucet: senders[0]?.address ?? parseAddress(`0x${"fa".repeat(20)}`),
    genesisTimeMs: 1_750_000_000_000,
    validators: Array.from({ length: validators }, (_, index) => {
      const { publicKey } = signingKeyOf(Buffer.alloc(32, index + 1));
      return {
        address: validatorAddress(publicKey),
        publicKey: Buffer.from(publicKey).toString("base64"),
        power: 100,
        operator: operatorAt(index),
        moniker: `validator ${index}`,
      };
    }),
    modules: firstModuleParams(),
  });
  const alloc = new Map(plain.alloc);
  const account = { balanceAtoken: 10_000n * TOKEN, code: undefined, storage: new Map() };
  for (const { address } of senders) alloc.set(address, account);
  const genesis = { ...plain, alloc };
  const chain = await ExecutionChain.open(genesis);
  const facts = { chain, genesis, senders };
  votesOfAll(facts);
  return facts;
}

function operatorAt(index: number): Address {
  return parseAddress(`0x${(0xb0000 + index).toString(16).padStart(40, "0")}`);
}

function stateOf({ chain }: BenchChain): JournaledState {
  return new JournaledState(chain.stores.state);
}

/** From now on all validators sign every block. */
function votesOfAll(one: BenchChain): void {
  const votes = new Validators(stateOf(one)).inConsensus().map((validator) => ({
    consensusAddress: validator.consensusAddress,
    power: validator.consensusPower,
    isSigned: true,
  }));
  one.chain.facts = { votes, misbehavior: [] };
}

const TYPES = loadDescriptors();

function signed(
  one: BenchChain,
  sender: Sender,
  messages: readonly TxMessage[],
  gasLimit: bigint,
): Buffer {
  const draft = {
    messages: packMessages(TYPES, messages),
    memo: "",
    timeoutHeight: 0n,
    gasLimit,
    feeAtoken: gasLimit,
  };
  const { cosmosChainId: chainId } = one.genesis;
  const place = { chainId, sequence: sender.nextNonce, mode: "direct" as const };
  sender.nextNonce += 1n;
  return signDraft(TYPES, draft, place, sender.privateKey);
}

const coin = (amount: bigint) => ({ denom: "atoken", amount });

/** 100 accounts delegate to all validators. */
async function delegateAll(one: BenchChain): Promise<void> {
  const { senders, genesis, chain } = one;
  const operators = genesis.validators.map((_, index) => operatorAt(index));
  const raws = senders.slice(0, DELEGATORS).map((sender) => {
    const messages = operators.map((operator) => ({
      name: "cosmos.staking.v1beta1.MsgDelegate",
      fields: {
        delegator_address: toBech32(sender.address),
        validator_address: toBech32(operator, VALIDATOR_PREFIX),
        amount: coin(TOKEN),
      },
    }));
    return signed(one, sender, messages, DELEGATIONS_GAS);
  });
  for (let at = 0; at < raws.length; at += DELEGATIONS_PER_BLOCK) {
    await chain.mine([], raws.slice(at, at + DELEGATIONS_PER_BLOCK));
  }
  votesOfAll(one);
}

function countDelegations(one: BenchChain): number {
  const delegations = new Delegations(stateOf(one));
  return one.genesis.validators.reduce((sum, _, index) => {
    return sum + delegations.delegatorsOf(operatorAt(index)).length;
  }, 0);
}

/** A block's work, signed before the clock starts. @returns how many transactions it has */
interface Prepared {
  readonly count: number;
  run(): Promise<void>;
}

function sendBlock(one: BenchChain, count: number): Prepared {
  const recipients = createRecipients(count);
  const raws = recipients.map((recipient, index) => {
    const sender = one.senders[index % one.senders.length];
    if (sender === undefined) throw new RangeError("no senders");
    const fields = {
      from_address: toBech32(sender.address),
      to_address: toBech32(recipient),
      amount: [coin(1n)],
    };
    return signed(one, sender, [{ name: "cosmos.bank.v1beta1.MsgSend", fields }], SEND_GAS);
  });
  const { cosmosChainId, params } = one.genesis;
  const { maxTransactionGas } = params;
  const limits = { cosmosChainId, chainId: CHAIN_ID, maxTransactionGas };
  return {
    count,
    async run() {
      // What a pool does before: execution trusts it.
      for (const raw of raws) {
        const fault = signatureFault(decodeCosmosTransaction(raw), limits);
        if (fault !== undefined) throw new Error(fault.log);
      }
      await one.chain.mine([], raws);
    },
  };
}

function transferBlock(one: BenchChain, count: number): Prepared {
  const recipients = createRecipients(count);
  const raws = recipients.map((to, index) => {
    const sender = one.senders[index % one.senders.length];
    if (sender === undefined) throw new RangeError("no senders");
    return bytesToHex(signNext(sender, { to }));
  });
  return {
    count,
    async run() {
      await one.chain.mine(raws);
    },
  };
}

/** Runs one block that does not count where there are others, then those that do. */
async function timeBlocks(blocks: number, prepare: () => Prepared) {
  if (blocks > 0) await prepare().run();
  let [count, ms] = [0, 0];
  for (let block = 0; block < Math.max(1, blocks); block++) {
    const prepared = prepare();
    const startMs = performance.now();
    await prepared.run();
    ms += performance.now() - startMs;
    count += prepared.count;
  }
  return { perSecond: (count * 1_000) / ms, ms };
}
