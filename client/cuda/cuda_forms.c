/* The forms that are left to us, with their tables on the device. */

#include "client/cuda/flight.h"

int finish_forms_open(struct finish_forms *forms, const struct device *device, const struct dlc_loader *loader,
                      struct why *why) {
        const struct driver *driver = device->driver;
        struct dlc_left_form form;
        int r = 0;

        *forms = (struct finish_forms){ 0 };
        while (r == 0 && forms->n < DLP_LEFT_FORMS_MAX &&
               dlc_get_left_form(loader, forms->n, &form, sizeof(form)) == 0) {
                struct finish_form *kept = &forms->items[forms->n];

                kept->form = form;
                r = driver_refuse(driver, driver->allocate(&kept->table, form.table_bytes), "memory for a table", why);
                if (r < 0)
                        break;
                forms->n++;
                r = driver_refuse(driver, driver->copy_in(kept->table, form.table, form.table_bytes, device->working),
                                  "copying a table", why);
        }
        return r;
}

void finish_forms_close(struct finish_forms *forms, const struct device *device) {
        for (uint32_t i = 0; i < forms->n; i++)
                device->driver->release(forms->items[i].table);
        forms->n = 0;
}
