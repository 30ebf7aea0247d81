// Following: a scroller that was at its end stays there while more arrives,
// until somebody scrolls up.

const near = 60; // pixels from the end that count as the end for who scrolls down

export class Follow {
  /** boxes are what grows in the scroller; may says whether it may follow at all now. */
  constructor(scroller, boxes, may) {
    this.scroller = scroller; this.may = may; this.top = 0;
    this.set(true);
    scroller.addEventListener("scroll", () => this.look(), { passive: true });
    this.sizes = new ResizeObserver(() => this.stay());
    for (const box of [scroller, ...boxes]) this.sizes.observe(box);
  }

  close() { this.sizes.disconnect(); }

  /** set begins or ends following. The browser leaves the position alone meanwhile: it is moved by
   * us, by somebody, and, where the content shrinks, back to the end. */
  set(on) {
    this.on = on;
    this.scroller.classList.toggle("follows", on);
  }

  /** look finds out whether somebody scrolled since the last look: up ends following, however
   * little it was, and down to the end begins it. */
  look() {
    const s = this.scroller, up = s.scrollTop < this.top - 1, left = s.scrollHeight - s.scrollTop - s.clientHeight;
    this.top = s.scrollTop;
    if (up && left > 2) this.set(false); else if (left < near) this.set(true);
  }

  /** stay keeps to the end. The browser tells of a scroll with the next frame: who scrolled up in
   * this one is not pulled back. */
  stay() {
    if (!this.on || !this.may()) return;
    this.look();
    if (this.on) this.toEnd();
  }

  toEnd() {
    this.set(true);
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.top = this.scroller.scrollTop;
  }
}
