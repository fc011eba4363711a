/** A real chain and the books of an exchange on it, of which proofs of reserves are made. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Wallet } from "ethers";
import { parseAddress } from "../../../../chain/address.js";
import type { WalletKey } from "../../../../chain/signing/keystore.js";
import { headerSource } from "../../../../cli/audit/balance/collect.js";
import {
  type MadeReserves,
  makeReserves,
  type ReservesParts,
} from "../../../../cli/audit/reserves/make-reserves.js";
import { parseReserves } from "../../../../cli/audit/reserves/read-reserves.js";
import {
  encodeReserves,
  type ReservesContents,
} from "../../../../cli/audit/reserves/reserves-file.js";
import { verifyReserves } from "../../../../cli/audit/reserves/verify-reserves.js";
import {
  customerAccount,
  DEPOSIT_ADDRESSES,
  heldAccount,
  parseCustomerId,
  SUSPENSE,
} from "../../../../ledger/journal/accounts.js";
import { postJournals } from "../../../../ledger/journal/journal.js";
import {
  type LiabilityBooks,
  type OwnAddress,
  readLiabilities,
} from "../../../../ledger/books/liabilities.js";
import type { Genesis } from "../../../../node/settings/genesis.js";
import { CometTestChain } from "../../../helpers/chains/comet-chain.js";
import { proofNodeOf } from "../../../helpers/chains/proof-node.js";
import {
  openTestLedger,
  registerTestWallets,
  type TestLedger,
} from "../../../helpers/services/ledger.js";

/** Key of the hot wallet. */
export const wallet = new Wallet(`0x${"11".repeat(32)}`);
/** Key of an account with coins that no ledger knows at first. */
export const added = new Wallet(`0x${"22".repeat(32)}`);
export const HOT = parseAddress(wallet.address);
export const DEPOSITS = parseAddress(`0x${"5e".repeat(20)}`);
/** What a deposit address and the other account have. */
export const PAID = 1_000_000n;
/** The block of all proofs. */
export const HEIGHT = 3;
export const keys = [{ address: HOT, privateKey: Buffer.from("11".repeat(32), "hex") }];

/** The chain, its books, and a folder for files. */
export class ReservesStage {
  readonly genesis: Genesis;

  private constructor(
    readonly chain: CometTestChain,
    readonly ledger: TestLedger,
    readonly folder: string,
  ) {
    this.genesis = chain.genesis;
  }

  static async open(): Promise<ReservesStage> {
    const folder = mkdtempSync(join(tmpdir(), "causeway-reserves-"));
    const chain = await CometTestChain.open(wallet.address);
    const fields = { type: 0, chainId: 6940, nonce: 0, gasLimit: 21_000, gasPrice: 25_000_000 };
    const payment = await wallet.signTransaction({ ...fields, to: DEPOSITS, value: PAID });
    const funding = { ...fields, nonce: 1, to: added.address, value: PAID };
    const funded = await wallet.signTransaction(funding);
    for (let height = 1; height <= HEIGHT + 2; height += 1) {
      await chain.mine(height === 2 ? [payment, funded] : []);
    }
    const ledger = await openTestLedger();
    await registerTestWallets(ledger.owner, HOT);
    await fillBooks(chain, ledger);
    return new ReservesStage(chain, ledger, folder);
  }

  async close(): Promise<void> {
    await Promise.all([this.chain.close(), this.ledger.drop()]);
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Accounts of which the last proof's making asked for a way through the state. */
  provenCount = 0;

  /** A proof of what the books say now. */
  async make(
    signers = keys,
    others: readonly OwnAddress[] = [],
    changes: Partial<LiabilityBooks> = {},
    named: readonly WalletKey[] = [],
    onProgress?: (done: number, of: number) => void,
    absent: Pick<ReservesParts, "leaveOut" | "elsewhere"> = {},
  ): Promise<MadeReserves> {
    const read = await readLiabilities(this.ledger.owner, { height: HEIGHT });
    const books = { ...read, addresses: [...read.addresses, ...others], ...changes };
    const { signal } = new AbortController();
    const headers = headerSource({ url: this.chain.url, oldestHeight: async () => 1, signal });
    const node = proofNodeOf(() => this.chain);
    this.provenCount = 0;
    const counting: typeof node = {
      ...node,
      proofs: (queries, height) => {
        this.provenCount += queries.length;
        return node.proofs(queries, height);
      },
    };
    const source = { node: counting, headers, genesis: this.genesis, height: HEIGHT, signal };
    const signing = { keys: signers, named, ...absent };
    return makeReserves({ source, books, ...signing, nonce: "auditor 7", onProgress });
  }

  /** What the file of a proof shows. */
  verify(contents: ReservesContents): ReturnType<typeof verifyReserves> {
    return this.verifyText(textOf(contents));
  }

  /** The same of a file's text. */
  async verifyText(text: string): ReturnType<typeof verifyReserves> {
    return verifyReserves(await parseReserves(text.split(/(?<=\n)/)), this.genesis);
  }

  /** A proof as former releases wrote it: one document, in which each account has a proof of its own. */
  async formerText(
    contents: ReservesContents,
    format: "causeway-reserves/1" | "causeway-reserves/2",
  ): Promise<string> {
    const { block, liabilitiesRoot } = await this.verify(contents);
    const about = [
      `chain: ${this.genesis.cosmosChainId}`,
      `height: ${HEIGHT}`,
      `block: ${block.blockHash}`,
    ];
    const owed = [`liabilities: ${liabilitiesRoot}`, "nonce: auditor 7"];
    const listed = contents.accounts.map(({ address, role }) => `${address} ${role}`).toSorted();
    const accounts = ["causeway-reserves-accounts/1", ...listed].join("\n");
    const accountsHash = createHash("sha256").update(accounts).digest("hex");
    const text =
      format === "causeway-reserves/1"
        ? [
            `${format}: we hold the key of this address, and owe what this root stands for.`,
            ...about,
          ]
        : [
            `${format}: we hold the keys of these accounts, and owe what this root stands for.`,
            ...about,
            `ledger: ${contents.ledgerId}`,
            `accounts: ${listed.length}, ${accountsHash}`,
          ];
    const signature = await wallet.signMessage([...text, ...owed].join("\n"));
    const hex = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString("hex")}`;
    const { nodes, header, liabilities, ...rest } = contents;
    const document = {
      format,
      ...rest,
      header: hex(header),
      accounts: contents.accounts.map((account) => ({
        ...account,
        accountProof: nodes.wayTo(account.address, block.stateRoot).map(hex),
      })),
      liabilities: liabilities.map((root) => ({ ...root, sumUnits: root.sumUnits.toString() })),
      signatures: [{ address: HOT, signature }],
    };
    return `${JSON.stringify(document, null, 1)}\n`;
  }
}

/** The file of a proof. */
export function textOf(contents: ReservesContents): string {
  return [...encodeReserves(contents)].join("");
}

/** Credits of block 2, a hold, coins of nobody, a deposit on its way, and a credit of block 5. */
async function fillBooks({ chain }: CometTestChain, { owner }: TestLedger): Promise<void> {
  await owner.query(`INSERT INTO customer (id) VALUES ('alice'), ('bob')`);
  const [alice, bob] = [parseCustomerId("alice"), parseCustomerId("bob")];
  const asset = "TOKEN";
  const credit = (key: string, height: number, to: typeof SUSPENSE, amountUnits: bigint) => ({
    kind: "deposit.credit",
    idemKey: key,
    effectiveHeight: height,
    postings: [{ asset, debit: DEPOSIT_ADDRESSES, credit: to, amountUnits }],
  });
  await owner.transaction(async (tx) => {
    await postJournals(tx, [
      credit("a", 2, customerAccount(alice), 700n),
      credit("b", 2, customerAccount(bob), 200n),
      credit("c", 2, SUSPENSE, 30n),
      credit("later", 5, customerAccount(bob), 999n),
    ]);
    const hold = { asset, debit: customerAccount(alice), credit: heldAccount(alice) };
    await postJournals(tx, [
      {
        kind: "withdrawal.hold",
        idemKey: "hold",
        effectiveHeight: null,
        postings: [{ ...hold, amountUnits: 100n }],
      },
    ]);
  });
  await owner.query(
    `INSERT INTO deposit_address (index, address, customer_id, from_height, backfilled)
     VALUES (0, $1, 'bob', 0, true)`,
    [DEPOSITS],
  );
  await owner.query(
    `INSERT INTO deposit (id, address, customer_id, asset, amount_units, status, height, block_hash,
                          tx_hash, tx_index, op_index)
     VALUES ('3-0-0', $1, 'bob', 'TOKEN', 5, 'detected', 3, $2, $2, 0, 0)`,
    [DEPOSITS, `0x${"0".repeat(64)}`],
  );
  const last = chain.view.block(HEIGHT + 2)?.block.hash;
  await owner.query(`UPDATE watch_cursor SET height = 5, block_hash = $1`, [last]);
}
