/** Who may try to prove a key, while others do. */
import { describe, expect, it } from "@jest/globals";
import { mostPending, PendingInbound } from "../../../node/p2p/peers/pending-inbound.js";

/** Begins as many as come in. */
function fill(pending: PendingInbound, ips: readonly string[]): number {
  return ips.filter((ip, index) => pending.begin(`${ip}:${index}`, ip)).length;
}

const many = (count: number, ip: (index: number) => string) => {
  return Array.from({ length: count }, (_, index) => ip(index));
};

describe("handshakes under way", () => {
  it("are fewer where the process may open few files", () => {
    expect([1_024, 4_096, 1_048_576].map((files) => mostPending(files))).toEqual([64, 256, 256]);
  });

  it.each([
    { places: 256, site: 16, group: 64 },
    { places: 64, site: 16, group: 32 },
    { places: 32, site: 8, group: 16 },
  ])("of $places are few of one address, some of one provider, and leave room for others", (of) => {
    const { places, site, group } = of;
    const pending = new PendingInbound(places);
    expect(
      fill(
        pending,
        many(100, () => "81.2.3.4"),
      ),
    ).toBe(site);
    expect(
      fill(
        pending,
        many(100, (index) => `81.2.5.${index}`),
      ),
    ).toBe(group - site);
    expect(fill(pending, ["81.2.9.9"])).toBe(0);
    expect(fill(pending, ["81.3.9.9", "127.0.0.1"])).toBe(2);
    // An IPv6 site is a whole network of 64 bits.
    expect(
      fill(
        pending,
        many(100, (index) => `2a01:4f8:1:2::${index + 1}`),
      ),
    ).toBe(site);
    expect(
      fill(
        pending,
        many(1_000, (index) => `${100 + (index % 40)}.1.2.3`),
      ),
    ).toBe(places - group - 2 - site);
    expect(fill(pending, ["200.3.9.9"])).toBe(0);
  });

  it("give their places back, once", () => {
    const pending = new PendingInbound(256);
    for (let round = 0; round < 3; round++) {
      expect(
        fill(
          pending,
          many(20, () => "81.2.3.4"),
        ),
      ).toBe(16);
      for (let index = 0; index < 20; index++) pending.end(`81.2.3.4:${index}`);
    }
  });
});
