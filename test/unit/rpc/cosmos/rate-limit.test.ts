/** How often a client of REST or gRPC may ask: who counts as one client, and when it may ask again. */
import { expect, it } from "@jest/globals";
import { RateLimit } from "../../../../node/rpc/rate-limit.js";
import { systemClock } from "../../../../runtime/process/clock.js";

function limitOf(perSecond: number) {
  const time = { nowMs: 0 };
  const clock = { ...systemClock, monotonicMs: () => time.nowMs };
  return { time, limit: new RateLimit(perSecond, clock) };
}

it("a client may ask for two seconds' worth at once, and goes on at its rate", () => {
  const { time, limit } = limitOf(2);
  const asked = () => Array.from({ length: 6 }, () => limit.take("192.0.2.1"));
  expect(asked()).toEqual([true, true, true, true, false, false]);
  time.nowMs = 500;
  expect(asked()).toEqual([true, false, false, false, false, false]);
  expect(limit.take("192.0.2.2")).toBe(true);
});

it("all addresses of an IPv6 network are one client: whoever has one has all", () => {
  const { limit } = limitOf(1);
  const own = Array.from({ length: 5 }, (_, index) => limit.take(`2001:db8:1:2::${index + 1}`));
  expect(own).toEqual([true, true, false, false, false]);
  expect(limit.take("2001:db8:1:3::1")).toBe(true);
});

it("an IPv4 address is one client, however the socket writes it", () => {
  const { limit } = limitOf(1);
  const forms = ["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"];
  expect(forms.map((address) => limit.take(address))).toEqual([true, true, false]);
});
