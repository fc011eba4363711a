/**
 * The row of MsgSend: the rate that a node holds with its own 2 s blocks, sent by CometBFT's RPC, beside
 * evmd where there is one. Both are sent the same transactions but for names, signed before.
 */
import { AuthInfo, SignDoc, TxBody, TxRaw } from "cosmjs-types/cosmos/tx/v1beta1/tx";
import { SignMode } from "cosmjs-types/cosmos/tx/signing/v1beta1/signing";
import { MsgSend } from "cosmjs-types/cosmos/bank/v1beta1/tx";
import { ACCOUNT_PREFIX, type Address, toBech32 } from "../../../chain/address.js";
import { ACCOUNT_NUMBER } from "../../../chain/cosmos/sign-doc.js";
import { secp256k1 } from "../../../chain/crypto.js";
import { keccak256 } from "../../../chain/hashes.js";
import { NETWORKS } from "../../../chain/networks.js";
import { BASE_DENOM } from "../../../chain/units.js";
import { compressedKey } from "../../../cli/transactions/document.js";
import type { BenchRow } from "../report.js";
import { createRecipients, type Payment, type Sender } from "../senders.js";
import { startCausewayTarget } from "../targets/causeway-target.js";
import type { ChainTarget } from "../targets/chain-target.js";
import {
  EVMD_CHAIN_ID,
  EVMD_DENOM,
  EVMD_PREFIX,
  evmdProgram,
  startEvmdTarget,
} from "../targets/evmd-target.js";
import { findHeldRate, type HeldResult, maxTrials, senderGroups } from "../transfer-trial.js";
import { Turns } from "../turns.js";
import { cometWire } from "../wires.js";
import { heldDetail, type RunLength } from "./chain-rows.js";

/** Names of the rows here, for `--only`. */
export const SEND_ROWS = ["sends"] as const;

/** What the row is run with. */
export interface SendRowsOptions {
  readonly length: RunLength;
  readonly profileFolder: string | undefined;
  readonly say: (line: string) => void;
}

/** Gas of a MsgSend to an account that is there, on either chain, rounded up. */
const SEND_GAS = 150_000n;

/** Of either chain's smallest unit. */
const FEE = 150_000n * 25_000_000n;

/** Accounts that are paid. */
const RECIPIENT_COUNT = 10_000;

const PUBLIC_KEY_TYPE = "/cosmos.evm.crypto.v1.ethsecp256k1.PubKey";

/** What transactions of a chain are signed for. */
interface SendPlace {
  readonly chainId: string;
  readonly prefix: string;
  readonly denom: string;
  readonly accountNumber: (sender: Sender) => bigint;
}

/** Runs the row. */
export async function runSendRows(options: SendRowsOptions): Promise<BenchRow[]> {
  const { length, profileFolder, say } = options;
  const funded = groupsOf(length)
    .flat()
    .map(({ address }) => address);
  const turns = new Turns();
  const targets: ChainTarget[] = [];
  try {
    const node = await startCausewayTarget({ funded, profileFolder });
    targets.push(node);
    const program = evmdProgram();
    const evmd = program === undefined ? undefined : await startEvmdTarget(program, funded);
    if (evmd === undefined) {
      say("no evmd here (see test/bench/targets/evmd-target.ts): the peer's column is empty");
    } else {
      targets.push(evmd);
    }
    const runs = [held(cometOf(node), OWN_PLACE, turns, options)];
    if (evmd !== undefined) {
      runs.push(held(evmd, peerPlace(evmd.accountNumbers), turns, options));
    }
    const [ours, peer] = await Promise.all(runs);
    if (ours === undefined) throw new Error("nothing was measured");
    return [
      {
        title: "MsgSend held, 2 s blocks, by broadcast_tx_sync",
        unit: "tx/s",
        ours: ours.perSecond,
        peer: peer?.perSecond,
        peerName: "evmd",
        aim: { ratio: 3 },
        details: [
          heldDetail("ours", ours, node.process.memoryMib()),
          ...(peer === undefined ? [] : [heldDetail("evmd", peer, evmd?.process.memoryMib())]),
        ],
      },
    ];
  } finally {
    await Promise.all(targets.map((target) => target.stop()));
  }
}

/** Our node as its consensus RPC shows it. */
function cometOf(node: Awaited<ReturnType<typeof startCausewayTarget>>): ChainTarget {
  return { ...node, process: node.process, url: node.cometUrl };
}

const groupsOf = ({ trials }: RunLength) => senderGroups(maxTrials(trials) + 1, "sends");

async function held(
  target: ChainTarget,
  place: SendPlace,
  turns: Turns,
  { length, say }: SendRowsOptions,
): Promise<HeldResult> {
  const groups = groupsOf(length);
  const recipients = createRecipients(RECIPIENT_COUNT);
  return findHeldRate({
    target,
    turns,
    wire: cometWire((sender, payment) => signSend(place, sender, payment)),
    senders: () => groups.shift() ?? [],
    payment: (index) => ({ to: recipients[index % recipients.length] }),
    blocksPerTrial: length.blocksPerTrial,
    trials: length.trials,
    say: (line) => say(`MsgSend, ${line}`),
  });
}

/** Our chain gives every account the same number. */
const OWN_PLACE: SendPlace = {
  chainId: NETWORKS.testnet.cosmosChainId,
  prefix: ACCOUNT_PREFIX,
  denom: BASE_DENOM,
  accountNumber: () => ACCOUNT_NUMBER,
};

function peerPlace(numbers: ReadonlyMap<Address, bigint>): SendPlace {
  const accountNumber = ({ address }: Sender) => {
    const number = numbers.get(address);
    if (number === undefined) throw new Error(`evmd has no account ${address}`);
    return number;
  };
  return { chainId: EVMD_CHAIN_ID, prefix: EVMD_PREFIX, denom: EVMD_DENOM, accountNumber };
}

/** A sender's next payment of one smallest unit, as an SDK transaction. */
function signSend(place: SendPlace, sender: Sender, { to }: Payment): Uint8Array {
  if (to === undefined) throw new Error("a payment to nobody");
  const { chainId, prefix, denom } = place;
  const message = MsgSend.encode({
    fromAddress: toBech32(sender.address, prefix),
    toAddress: toBech32(to, prefix),
    amount: [{ denom, amount: "1" }],
  }).finish();
  const messages = [{ typeUrl: "/cosmos.bank.v1beta1.MsgSend", value: message }];
  const bodyBytes = TxBody.encode(TxBody.fromPartial({ messages })).finish();
  const key = compressedKey(sender.privateKey);
  const authInfoBytes = AuthInfo.encode(
    AuthInfo.fromPartial({
      signerInfos: [
        {
          // Field 1 of a PubKey: its 33 bytes.
          publicKey: { typeUrl: PUBLIC_KEY_TYPE, value: Uint8Array.of(0x0a, key.length, ...key) },
          modeInfo: { single: { mode: SignMode.SIGN_MODE_DIRECT } },
          sequence: sender.nextNonce,
        },
      ],
      fee: { amount: [{ denom, amount: String(FEE) }], gasLimit: SEND_GAS },
    }),
  ).finish();
  sender.nextNonce += 1n;
  const accountNumber = place.accountNumber(sender);
  const document = SignDoc.encode({ bodyBytes, authInfoBytes, chainId, accountNumber }).finish();
  const { r, s } = secp256k1.sign(keccak256(document), sender.privateKey);
  return TxRaw.encode({ bodyBytes, authInfoBytes, signatures: [Buffer.concat([r, s])] }).finish();
}
