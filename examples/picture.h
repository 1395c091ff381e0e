/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * picture.h - reads a PNG or PGM as grey values from 0 to 1, writes a PNG, or a PGM where the name says so.
 */
#ifndef PICTURE_H
#define PICTURE_H

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct picture {
	int width, height;
	double *grey; /* width * height, row by row; free() it */
};

#define PICTURE_MOST (64 << 20) /* pixels */

/* Each function: 0, or -1 after a line on stderr. */

static inline int picture_room(struct picture *p, const char *name, long width, long height)
{
	if (width < 1 || height < 1 || width > PICTURE_MOST || height > PICTURE_MOST / width) {
		fprintf(stderr, "%s: a picture of %ld x %ld pixels\n", name, width, height);
		return -1;
	}
	p->width = (int)width;
	p->height = (int)height;
	p->grey = malloc((size_t)(width * height) * sizeof(*p->grey));
	if (!p->grey)
		fprintf(stderr, "%s: no memory for %ld x %ld pixels\n", name, width, height);
	return p->grey ? 0 : -1;
}

static inline int picture_read_png(struct picture *p, const char *name)
{
	png_image png = {.version = PNG_IMAGE_VERSION};
	unsigned char *bytes = NULL;
	int bad = -1;

	if (!png_image_begin_read_from_file(&png, name)) {
		fprintf(stderr, "%s: %s\n", name, png.message);
		return -1;
	}
	png.format = PNG_FORMAT_GRAY;
	if (picture_room(p, name, (long)png.width, (long)png.height) == 0) {
		bytes = malloc(PNG_IMAGE_SIZE(png));
		if (bytes && png_image_finish_read(&png, NULL, bytes, 0, NULL)) {
			for (size_t i = 0; i < (size_t)p->width * p->height; i++)
				p->grey[i] = bytes[i] / 255.0;
			bad = 0;
		} else {
			fprintf(stderr, "%s: %s\n", name, bytes ? png.message : "no memory");
			free(p->grey);
		}
	}
	free(bytes);
	png_image_free(&png);
	return bad;
}

/* The next number of a PGM's head; comments run from # to the end of the line.  -1: none. */
static inline long picture_pgm_number(FILE *file)
{
	int c = getc(file);
	long n = 0;
	while (c == '#' || c == ' ' || c == '\t' || c == '\r' || c == '\n') {
		if (c == '#')
			while (c != '\n' && c != EOF)
				c = getc(file);
		else
			c = getc(file);
	}
	if (c < '0' || c > '9')
		return -1;
	for (; c >= '0' && c <= '9' && n < 100000000; c = getc(file))
		n = n * 10 + (c - '0');
	return n;
}

/* After the two characters "P5" or "P2". */
static inline int picture_read_pgm(struct picture *p, const char *name, FILE *file, int binary)
{
	long width = picture_pgm_number(file), height = picture_pgm_number(file),
	     most = picture_pgm_number(file);
	if (width < 0 || height < 0 || most < 1 || most > 65535) {
		fprintf(stderr, "%s: not a PGM: its head is wrong\n", name);
		return -1;
	}
	if (picture_room(p, name, width, height) != 0)
		return -1;
	for (long i = 0; i < width * height; i++) {
		long v = binary ? getc(file) : picture_pgm_number(file);
		if (binary && v >= 0 && most > 255)
			v = v * 256 + getc(file);
		if (v < 0 || v > most) {
			fprintf(stderr, "%s: cut short or out of range at pixel %ld\n", name, i);
			free(p->grey);
			return -1;
		}
		p->grey[i] = (double)v / (double)most;
	}
	return 0;
}

static inline int picture_read(struct picture *p, const char *name)
{
	char magic[2] = "";
	FILE *file = fopen(name, "rb");
	int bad;

	if (!file) {
		perror(name);
		return -1;
	}
	if (fread(magic, 1, 2, file) == 2 && magic[0] == 'P' &&
	    (magic[1] == '5' || magic[1] == '2'))
		bad = picture_read_pgm(p, name, file, magic[1] == '5');
	else
		bad = picture_read_png(p, name);
	fclose(file);
	return bad;
}

static inline int picture_write_pgm(const struct picture *p, const char *name,
				    const unsigned char *bytes)
{
	size_t n = (size_t)p->width * p->height;
	FILE *file = fopen(name, "wb");
	int good = 0;

	if (file) {
		good = fprintf(file, "P5\n%d %d\n255\n", p->width, p->height) > 0 &&
		       fwrite(bytes, 1, n, file) == n;
		good = fclose(file) == 0 && good;
	}
	if (!good)
		perror(name);
	return good ? 0 : -1;
}

/* Brightest becomes white. */
static inline int picture_write(const struct picture *p, const char *name)
{
	png_image png = {.version = PNG_IMAGE_VERSION, .format = PNG_FORMAT_GRAY};
	size_t n = (size_t)p->width * p->height;
	unsigned char *bytes = malloc(n);
	size_t end = strlen(name);
	double most = 0;
	int good = 0;

	png.width = (png_uint_32)p->width;
	png.height = (png_uint_32)p->height;
	for (size_t i = 0; i < n; i++)
		most = p->grey[i] > most ? p->grey[i] : most;
	if (bytes) {
		for (size_t i = 0; i < n; i++)
			bytes[i] = (unsigned char)(most > 0 ? p->grey[i] / most * 255 + 0.5 : 0);
		if (end > 4 && strcmp(name + end - 4, ".pgm") == 0) {
			int bad = picture_write_pgm(p, name, bytes);
			free(bytes);
			return bad;
		}
		good = png_image_write_to_file(&png, name, 0, bytes, 0, NULL);
	}
	if (!good)
		fprintf(stderr, "%s: %s\n", name, bytes ? png.message : "no memory");
	free(bytes);
	return good ? 0 : -1;
}

#endif
