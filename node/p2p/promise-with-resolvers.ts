/** `Promise.withResolvers` for Node 20, which the libp2p packages take for granted. */

/** Defines it where the runtime has none; to be called before anything of libp2p runs. */
export function providePromiseWithResolvers(): void {
  if (typeof Promise.withResolvers === "function") return;
  Object.defineProperty(Promise, "withResolvers", {
    configurable: true,
    writable: true,
    value: function withResolvers<T>(this: PromiseConstructor): PromiseWithResolvers<T> {
      let resolve: PromiseWithResolvers<T>["resolve"] = () => undefined;
      let reject: PromiseWithResolvers<T>["reject"] = () => undefined;
      const promise = new this<T>((onResolve, onReject) => {
        resolve = onResolve;
        reject = onReject;
      });
      return { promise, resolve, reject };
    },
  });
}
