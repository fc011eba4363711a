/** A treasury whose hot wallet has coins, and addresses of new customers to sweep. */
import { afterAll, beforeAll, beforeEach } from "@jest/globals";
import type { Address } from "../../../../chain/address.js";
import { WALLET } from "../../../helpers/exchange/house.js";
import { TreasuryBench } from "../treasury-bench.js";

/** One for all tests of a file, each of which begins with the usual policy. */
export function treasuryForTests(take: (bench: TreasuryBench) => void): void {
  let bench: TreasuryBench | undefined;
  beforeAll(async () => {
    bench = await TreasuryBench.open();
    await bench.bench.mine([{ to: WALLET, value: 10n ** 18n }]);
    take(bench);
  });
  afterAll(() => bench?.close());

  beforeEach(() => {
    if (bench !== undefined) bench.files.policy = bench.policyOf({});
  });
}

/** An address of a customer, with the index of its key. */
export interface CustomerAddress {
  readonly address: Address;
  readonly customer: string;
  readonly index: number;
}

/** Registers an address of a new customer each time that it is called. */
export function newAddresses(bench: () => TreasuryBench): () => Promise<CustomerAddress> {
  let registered = 0;
  return async () => {
    const index = registered;
    const customer = `customer-${index}`;
    registered += 1;
    return { address: await bench().bench.register(customer), customer, index };
  };
}
