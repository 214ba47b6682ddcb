// Prints the address of a server that listens on any free port: NODE_OPTIONS="--import print_port.mjs"
import { Server } from "node:net";

const { listen } = Server.prototype;
Server.prototype.listen = function (...args) {
  this.once("listening", () => console.error(`http://127.0.0.1:${this.address().port}/`));
  return listen.apply(this, args);
};
