// Says where a server listens that was told to take any port: NODE_OPTIONS="--import say_port.mjs"
import { Server } from "node:net";

const { listen } = Server.prototype;
Server.prototype.listen = function (...args) {
  this.once("listening", () => console.error(`http://127.0.0.1:${this.address().port}/`));
  return listen.apply(this, args);
};
