/* The search runs in a worker, and no browser starts one for a page that was opened as a file. There, and only there,
   a hidden frame does a worker's work. */
(function () {
  if (location.protocol !== "file:") return;

  class FrameWorker extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.appendChild(this.frame);
      window.addEventListener("message", (event) => {
        if (event.source !== this.frame.contentWindow) return;
        const copy = new MessageEvent("message", { data: event.data });
        if (this.onmessage) this.onmessage(copy);
        this.dispatchEvent(copy);
      });
      this.ready = new Promise((resolve) => this.frame.addEventListener("load", resolve, { once: true }));
      this.frame.srcdoc = `<script>
        postMessage = (data) => parent.postMessage(data, "*");
        importScripts = (...urls) => urls.reduce((before, url) => before.then(() => new Promise((done) => {
          const script = document.createElement("script");
          script.src = url;
          script.onload = done;
          document.body.appendChild(script);
        })), Promise.resolve());
      </scr` + `ipt><body><script src="${url}"></scr` + `ipt></body>`;
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  }

  window.Worker = FrameWorker;
})();
